package wire

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestElements(t *testing.T) {
	for in, want := range map[string][]string{
		`[]`:                                  nil,
		"[ \n]":                               nil,
		`[1]`:                                 {"1"},
		` [ {"a":[1,2]} , "],[" ,null,[ ] ] `: {`{"a":[1,2]}`, `"],["`, `null`, `[ ]`},
	} {
		var got []string
		Elements([]byte(in), func(raw []byte) {
			if cap(raw) != len(raw) {
				t.Errorf("element %s has room behind it", raw)
			}
			got = append(got, string(raw))
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Elements(%s) (-want +got):\n%s", in, diff)
		}
	}
}

func TestMember(t *testing.T) {
	const object = ` { "a" : 1 , "b":{"a":2,"c":"x"},"\u0063":[ ], "d":null,"":0 , "a":3}`
	for name, want := range map[string]string{"a": "3", "b": `{"a":2,"c":"x"}`, "c": "[ ]", "d": "null", "": "0", "e": "", "A": ""} {
		got := Member([]byte(object), name)
		if string(got) != want || (got == nil) != (want == "") {
			t.Errorf("Member(%q) = %q, want %q", name, got, want)
		}
	}
	for _, other := range []string{`[{"a":1}]`, `"a"`, `null`, `1`, ``, `{}`} {
		if got := Member([]byte(other), "a"); got != nil {
			t.Errorf("Member of %s = %q, want nil", other, got)
		}
	}
}
