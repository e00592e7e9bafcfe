package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestScanTable(t *testing.T) {
	for _, c := range byteCases() {
		t.Run(c.name, func(t *testing.T) {
			f, err := Scan([]byte(c.in))
			if err != nil {
				t.Fatalf("Scan(%q): %v", c.in, err)
			}
			if diff := cmp.Diff(c.want, viewOf(&f)); diff != "" {
				t.Errorf("frame of %q (-want +got):\n%s", c.in, diff)
			}
			if want := strings.Trim(c.in, " \t\r\n"); string(f.Bytes) != want {
				t.Errorf("Bytes = %q, want %q", f.Bytes, want)
			}
			if got := f.IsRequest(); got != (c.sent != "") {
				t.Errorf("IsRequest = %v", got)
			}
			if got := f.IsNotification(); got != (c.told != "") {
				t.Errorf("IsNotification = %v", got)
			}
		})
	}
}

func TestScanRefusesWhatIsNotJSON(t *testing.T) {
	for name, in := range invalidCases() {
		if json.Valid([]byte(in)) {
			t.Errorf("%s: the case itself is valid JSON", name)
		}
		if _, err := Scan([]byte(in)); !errors.Is(err, ErrSyntax) {
			t.Errorf("%s: Scan(%q) = %v, want ErrSyntax", name, in, err)
		}
		if _, err := Scan([]byte(`{"params":{"_meta":{"x":` + in + `}}}`)); err == nil {
			t.Errorf("%s: accepted inside _meta", name)
		}
	}
}

func TestScanSaysWhere(t *testing.T) {
	_, err := Scan([]byte(`{"id":1,}`))
	if got, want := fmt.Sprint(err), "not valid JSON: expected a string at byte 8"; got != want {
		t.Errorf("error = %q, want %q", got, want)
	}
	_, err = Scan([]byte(`{"id":1,"\u0069d":2}`))
	if got, want := fmt.Sprint(err), `duplicate member "id"`; got != want {
		t.Errorf("error = %q, want %q", got, want)
	}
}

func TestScanRefusesInvalidUTF8(t *testing.T) {
	for _, in := range []string{
		"{\"x\":\"\xff\"}", "\xff", "{}\x80", "\"\xc3\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "{\"\xc0\xaf\":1}",
	} {
		if _, err := Scan([]byte(in)); !errors.Is(err, ErrUTF8) {
			t.Errorf("Scan(%q) = %v, want ErrUTF8", in, err)
		}
		if _, _, _, err := ScanEnvelope([]byte(in)); !errors.Is(err, ErrUTF8) {
			t.Errorf("ScanEnvelope(%q) = %v, want ErrUTF8", in, err)
		}
	}
}

// escapeFirst spells a key with its first letter escaped.
func escapeFirst(key string) string { return fmt.Sprintf(`\u%04x%s`, key[0], key[1:]) }

// spec 08 6.1: a member the broker reads may not stand twice, in any spelling.
func TestScanRefusesDuplicates(t *testing.T) {
	levels := []struct {
		before, after string
		keys          []string
	}{
		{`{`, `}`, []string{"jsonrpc", "id", "method", "params", "result", "error", "type", "aggregate", "provider", "payload"}},
		{`{"params":{`, `}}`, []string{"_meta", "progressToken", "requestId", "uri", "aggregate"}},
		{`{"params":{"_meta":{`, `}}}`, []string{"progressToken", "traceparent", CallerKey}},
	}
	for _, level := range levels {
		for _, key := range level.keys {
			for _, second := range []string{key, escapeFirst(key), strings.ReplaceAll(key, "/", `\/`)} {
				for _, value := range []string{`1`, `"x"`, `null`, `{}`, `[true]`} {
					in := level.before + `"` + key + `":` + value + `,"z":{"` + key + `":1},"` + second + `":2` + level.after
					if _, err := Scan([]byte(in)); !errors.Is(err, ErrDuplicate) {
						t.Errorf("Scan(%s) = %v, want ErrDuplicate", in, err)
					}
				}
			}
		}
	}
	const apart = `{"aggregate":true,"progressToken":1,"params":{"aggregate":true,"id":1,"progressToken":2,"_meta":{"progressToken":3,"_meta":{},"uri":1}},"_meta":{},"uri":1}`
	if _, err := Scan([]byte(apart)); err != nil {
		t.Errorf("one key at several levels: %v", err)
	}
}

// nested returns n containers inside one another.
func nested(kind string, n int) string {
	var open, end strings.Builder
	tail := make([]string, 0, n)
	for i := range n {
		object := kind == "objects" || kind == "mixed" && i%2 == 1
		switch {
		case object && i == n-1:
			open.WriteString(`{`)
		case object:
			open.WriteString(`{"a":`)
		default:
			open.WriteString(`[`)
		}
		if object {
			tail = append(tail, "}")
		} else {
			tail = append(tail, "]")
		}
	}
	for i := len(tail) - 1; i >= 0; i-- {
		end.WriteString(tail[i])
	}
	return open.String() + end.String()
}

func TestScanDepth(t *testing.T) {
	places := []struct {
		before, after string
		depth         int
	}{
		{``, ``, 0},
		{`{"id":`, `}`, 1},
		{`{"method":`, `}`, 1},
		{`{"payload":`, `}`, 1},
		{`{"x":`, `}`, 1},
		{`{"params":`, `}`, 1},
		{`{"params":{"uri":`, `}}`, 2},
		{`{"params":{"_meta":`, `}}`, 2},
		{`{"params":{"_meta":{"traceparent":`, `}}}`, 3},
		{`[[],{"a":[`, `]}]`, 3},
	}
	for _, p := range places {
		for _, kind := range []string{"arrays", "objects", "mixed"} {
			in := func(depth int) []byte { return []byte(p.before + nested(kind, depth-p.depth) + p.after) }
			if _, err := Scan(in(MaxDepth)); err != nil {
				t.Errorf("%s in %s: depth %d: %v", kind, p.before, MaxDepth, err)
			}
			if _, err := Scan(in(MaxDepth + 1)); !errors.Is(err, ErrDepth) {
				t.Errorf("%s in %s: depth %d: %v, want ErrDepth", kind, p.before, MaxDepth+1, err)
			}
		}
	}
}

const sample = ` {"jsonrpc":"2.0","id":-1.5e+3,"method":"tools\/call","params":{"name":"é🎉\ud83d\ude00","uri":"u",` +
	`"_meta":{"progressToken":"t","traceparent":"` + kept + `",` + caller + `:{"a":[true,false,null]}},"arguments":[{},[],""]}}`

func TestScanTruncatedNeverAccepts(t *testing.T) {
	envelope := `{"provider":"a\u002fb","payload":` + sample + `}`
	for _, whole := range []string{sample, envelope} {
		if _, err := Scan([]byte(whole)); err != nil {
			t.Fatalf("the sample itself: %v", err)
		}
		for i := range len(whole) {
			cut := []byte(whole[:i])
			if _, err := Scan(cut); !errors.Is(err, ErrSyntax) && !errors.Is(err, ErrUTF8) {
				t.Errorf("Scan of the first %d bytes = %v", i, err)
			}
			if _, _, _, err := ScanEnvelope(cut); !errors.Is(err, ErrSyntax) && !errors.Is(err, ErrUTF8) {
				t.Errorf("ScanEnvelope of the first %d bytes = %v", i, err)
			}
			Member(cut, "params")
			Elements(cut, func([]byte) {})
		}
	}
}

// Hostile input costs time in proportion to its length. Anything quadratic in a
// mebibyte would take a quarter of an hour; the bound leaves room for the race
// detector on a busy machine.
func TestScanIsQuick(t *testing.T) {
	const mebi, bound = 1 << 20, 20 * time.Second
	repeat := func(size int, before, unit, after string) []byte {
		return []byte(before + strings.Repeat(unit, (size-len(before)-len(after))/len(unit)) + after)
	}
	inputs := []struct {
		name string
		in   []byte
		want error
	}{
		{"nested arrays", repeat(5*mebi, "", "[", ""), ErrDepth},
		{"nested objects", repeat(5*mebi, "", `{"a":`, ""), ErrDepth},
		{"nested params", repeat(5*mebi, `{"params":{"_meta":`, `[{"_meta":`, ""), ErrDepth},
		{"wide array", repeat(mebi, "[0", ",[{}]", "]"), nil},
		{"one string", repeat(mebi, `{"x":"`, "a", `"}`), nil},
		{"backslashes", repeat(mebi, `{"x":"`, `\\`, `"}`), nil},
		{"escapes in a key", repeat(mebi, `{"`, `\u0061`, `":1}`), nil},
		{"escapes in the method", repeat(mebi, `{"method":"`, `\n`, `"}`), nil},
		{"many escaped keys", repeat(mebi, `{"z":0`, `,"\u0061":1`, `}`), nil},
		{"digits", repeat(mebi, `{"id":`, `1`, `}`), nil},
		{"space", repeat(mebi, `{`, ` `, `}`), nil},
	}
	for _, c := range inputs {
		start := time.Now()
		_, err := Scan(c.in)
		if took := time.Since(start); took > bound {
			t.Errorf("%s: %d bytes took %v", c.name, len(c.in), took)
		}
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

func TestScanMethodPresence(t *testing.T) {
	f, err := Scan([]byte(`{"id":1,"method":""}`))
	if err != nil || f.Method == nil || !f.IsRequest() {
		t.Errorf("empty method: Method %v, request %v, err %v; want a request", f.Method, f.IsRequest(), err)
	}
	f, err = Scan([]byte(`{"id":1,"method":null}`))
	if err != nil || f.Method != nil || !f.IsResponse() {
		t.Errorf("null method: Method %v, response %v, err %v; want a response", f.Method, f.IsResponse(), err)
	}
	for in, want := range map[string]bool{`{"id":null,"result":1}`: false, `{"result":1}`: false, `{"id":"x"}`: true} {
		if f, _ = Scan([]byte(in)); f.IsResponse() != want {
			t.Errorf("IsResponse(%s) = %v, want %v", in, !want, want)
		}
	}
}

func TestScanKeepsTheInput(t *testing.T) {
	in := []byte(sample)
	f, err := Scan(in)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(in, []byte(sample)) {
		t.Error("Scan changed its input")
	}
	_ = append(f.Bytes, 'x')
	if string(in) != sample || cap(f.Bytes) != len(f.Bytes) {
		t.Error("Bytes has room behind it: an append would write into the caller's buffer")
	}
}

func TestUnquote(t *testing.T) {
	for raw, want := range map[string]string{
		`""`: "", `"a"`: "a", `"é\u00e9\/"`: "éé/", `"\ud83c\udf89"`: "🎉", `"\ud800"`: "\ufffd", `"\"\\"`: `"\`,
	} {
		if got, ok := Unquote([]byte(raw)); !ok || got != want {
			t.Errorf("Unquote(%s) = %q, %v, want %q", raw, got, ok, want)
		}
	}
	for _, raw := range []string{``, `1`, `"`, `null`, `{}`, `[""]`} {
		if got, ok := Unquote([]byte(raw)); ok {
			t.Errorf("Unquote(%s) = %q, want not a string", raw, got)
		}
	}
}
