package aggregate

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"mcpbroker/actors/wire"
)

// spec 03 3.4, spec 07 row 58: all of an entry stays but its name and its
// description.
func TestNewEntry(t *testing.T) {
	m := &member{slot: `p"1`, stamp: stampOf(`p"1`)}
	for _, c := range []struct {
		kind      list
		raw, want string
	}{
		{tools, `{"name":"a"}`, `{"name":"p\"1-a","description":"[p\"1]"}`},
		{tools, `{ "x" : 1.50 , "name" : "a" , "y" : {"name":"b","description":"c"} }`, `{ "x" : 1.50 , "name" : "p\"1-a","description":"[p\"1]" , "y" : {"name":"b","description":"c"} }`},
		{tools, `{"description":"\u00e9\n","title":"t","name":"a"}`, `{"description":"[p\"1] \u00e9\n","title":"t","name":"p\"1-a"}`},
		{tools, `{"name":"a","inputSchema":{"type":"object"},"description":"d"}`, `{"name":"p\"1-a","inputSchema":{"type":"object"},"description":"[p\"1] d"}`},
		{tools, `{"name":"a","description":""}`, `{"name":"p\"1-a","description":"[p\"1]"}`},
		{tools, `{"name":"a","description":null}`, `{"name":"p\"1-a","description":"[p\"1]"}`},
		{tools, `{"name":"a","description":["x"]}`, `{"name":"p\"1-a","description":"[p\"1]"}`},
		{tools, `{"n\u0061me":"a","descripti\u006fn":"x"}`, `{"n\u0061me":"p\"1-a","descripti\u006fn":"[p\"1] x"}`},
		{prompts, `{"name":"` + strings.Repeat("a", 80) + `","description":"d"}`, `{"name":"p\"1-` + strings.Repeat("a", 80) + `","description":"[p\"1] d"}`},
		{resources, `{"name":"a","uri":"file:///x\"","description":"d"}`, `{"name":"a","uri":"slot:p%221/file:///x\"","description":"d"}`},
		{templates, `{"uriTemplate":"","name":"a"}`, `{"uriTemplate":"slot:p%221/","name":"a"}`},
	} {
		e, ok := newEntry(c.kind, m, []byte(c.raw))
		if !ok || string(e.bytes) != c.want {
			t.Errorf("newEntry(%s)\n got %s\nwant %s", c.raw, e.bytes, c.want)
		}
	}
	for _, raw := range []string{`{}`, `[]`, `"name"`, `7`, `{"name":null}`, `{"name":["a"]}`, `{"name":""}`, `{"name":"","title":"t"}`} {
		if e, ok := newEntry(tools, m, []byte(raw)); ok {
			t.Errorf("newEntry(%s) = %s, want none", raw, e.bytes)
		}
	}
}

func TestEntryUnderAnotherName(t *testing.T) {
	e, _ := newEntry(tools, &member{slot: "s"}, []byte(`{"description":"d","name":"a","x":1}`))
	if got, want := string(e.as("s-a-2")), `{"description":"[s] d","name":"s-a-2","x":1}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// document draws a JSON text with space and escapes in odd places.
func document(t *rapid.T, depth int) string {
	space := rapid.SampledFrom([]string{"", "", " ", "\n\t"})
	text := rapid.Custom(func(t *rapid.T) string {
		raw, _ := json.Marshal(rapid.StringN(0, 6, -1).Draw(t, "text"))
		return rapid.SampledFrom([]string{string(raw), `"\\"`, `"\\\""`, `"{[,:]}"`, `"\u0022"`}).Draw(t, "string")
	})
	kind := rapid.IntRange(0, 5).Draw(t, "kind")
	if depth == 0 && kind < 2 {
		kind = 2
	}
	switch kind {
	case 0, 1:
		var items []string
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			item := space.Draw(t, "a") + document(t, depth-1) + space.Draw(t, "b")
			if kind == 0 {
				item = space.Draw(t, "c") + text.Draw(t, "key") + space.Draw(t, "d") + ":" + item
			}
			items = append(items, item)
		}
		inside := strings.Join(items, ",")
		if inside == "" {
			inside = space.Draw(t, "e")
		}
		return map[int]string{0: "{" + inside + "}", 1: "[" + inside + "]"}[kind]
	case 2:
		return rapid.SampledFrom([]string{"0", "-1.5e+10", "1E400", "12345678901234567890"}).Draw(t, "number")
	case 3:
		return rapid.SampledFrom([]string{"true", "false", "null"}).Draw(t, "word")
	}
	return text.Draw(t, "value")
}

// The walks find what the standard library finds.
func TestWalks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		object := `{"a":` + document(t, 3) + ` , "b\n" :` + document(t, 3) + "}"
		array := "[ " + document(t, 3) + "," + document(t, 3) + " ]"
		var got, want []string
		eachMember([]byte(object), func(key []byte, at wire.Span) {
			got = append(got, string(key), string(within([]byte(object), at)))
		})
		var members map[string]json.RawMessage
		if err := json.Unmarshal([]byte(object), &members); err != nil {
			t.Fatal(err)
		}
		want = append(want, `"a"`, string(members["a"]), `"b\n"`, string(members["b\n"]))
		eachElement([]byte(array), func(at wire.Span) { got = append(got, string(within([]byte(array), at))) })
		var elements []json.RawMessage
		if err := json.Unmarshal([]byte(array), &elements); err != nil {
			t.Fatal(err)
		}
		want = append(want, string(elements[0]), string(elements[1]))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s %s (-want +got):\n%s", object, array, diff)
		}
	})
}

// A spliced frame is what a scan of its bytes finds.
func TestSplice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := []string{
			`"name":"old"`, `"uri":"u"`, `"progressToken":1`, `"requestId":"r"`, `"aggregate":true`,
			`"_meta":{"progressToken":"p","traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","io.cyanmycelium/caller":{}}`,
			`"arguments":` + document(t, 2),
		}
		params := `"params":{` + strings.Join(rapid.Permutation(members).Draw(t, "members"), ",") + `}`
		top := []string{`"jsonrpc":"2.0"`, `"id":"x"`, `"method":"tools/call"`, params, `"type":"t"`, `"provider":"p"`, `"payload":[]`, `"result":1`, `"error":{}`}
		f := mustScan("{" + strings.Join(rapid.Permutation(top).Draw(t, "top"), " ,") + "}")
		at, twice := only(f.Raw(f.Params), "name")
		if twice {
			t.Fatal("one name is two")
		}
		with := string(wire.AppendString(nil, rapid.String().Draw(t, "name")))
		got := splice(&f, shift(at, f.Params.Start), []byte(with))
		want := mustScan(strings.Replace(string(f.Bytes), `"name":"old"`, `"name":`+with, 1))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("spans (-want +got):\n%s", diff)
		}
	})
}

func TestStampContents(t *testing.T) {
	stamp := stampOf("s")
	for _, c := range []struct{ frame, want string }{
		{`{"id":1,"result":{"contents":[]}}`, `{"id":1,"result":{"contents":[]}}`},
		{`{"id":1,"result":{"contents":"no"}}`, `{"id":1,"result":{"contents":"no"}}`},
		{`{"id":1,"result":7}`, `{"id":1,"result":7}`},
		{`{"id":1,"error":{}}`, `{"id":1,"error":{}}`},
		{`{"id":1,"result":{"contents":[{"uri":7},{"text":"uri","uri" : "a"} , {"uri":"b"}],"uri":"c"}}`,
			`{"id":1,"result":{"contents":[{"uri":7},{"text":"uri","uri" : "slot:s/a"} , {"uri":"slot:s/b"}],"uri":"c"}}`},
	} {
		if got := string(stampContents([]byte(c.frame), stamp)); got != c.want {
			t.Errorf("stampContents(%s)\n got %s\nwant %s", c.frame, got, c.want)
		}
	}
}

func TestClip(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
	}{
		{"abcdef", 6, "abcdef"}, {"abcdefg", 6, "abc..."}, {"abéé", 6, "abéé"}, {"aéééé", 6, "aé..."}, {"ééééé", 6, "é..."},
	} {
		if got := clip(c.text, c.n); got != c.want {
			t.Errorf("clip(%q, %d) = %q, want %q", c.text, c.n, got, c.want)
		}
	}
}
