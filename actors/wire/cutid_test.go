package wire

import (
	"bytes"
	"testing"
)

// The id of an answer that is too large is found where servers write it, and
// nowhere else.
func TestCutResponseID(t *testing.T) {
	for _, c := range []struct{ head, tail, want string }{
		{`{"jsonrpc":"2.0","id":"brk-7","result":"xx`, ``, `"brk-7"`},
		{`{ "id" : "brk-7" , "result":"xx`, ``, `"brk-7"`},
		{`{"result":{"id":"brk-1","a":[{"id":"brk-2"}],"s":"\"id\":\"brk-3\""},"id":"brk-7"`, ``, `"brk-7"`},
		{`{"result":{"id":"brk-1"`, ``, ``},
		{`{"result":{"id":"brk-1","text":"xx`, `xx"},"id":"brk-7"}`, `"brk-7"`},
		{`{"result":"xx`, `xx","jsonrpc":"2.0","id":"brk-7"}`, `"brk-7"`},
		{`{"result":"xx`, `xx","id":"brk-7","jsonrpc":"2.0"}` + "\r\n", `"brk-7"`},
		{`{"result":"xx`, `xx" , "id" : "brk-7" } `, `"brk-7"`},
		{`{"result":"xx`, `xx","a":{"id":"brk-7"}}`, ``},
		{`{"result":"xx`, `xx\",\"id\":\"brk-7\"}"}`, ``},
		{`{"id":7,"result":"xx`, ``, ``},
		{`{"id":"abc","result":"xx`, ``, ``},
		{`{"id":"brk-07","result":"xx`, ``, ``},
		{`{"result":"xx`, `"id":"brk-007"}`, ``},
		{`{"result":"xx`, `,"id":"brk-007"}`, ``},
		{`{"key":"id","value":"brk-7","x`, ``, ``},
		{`["id","brk-7"`, ``, ``},
		{`{"id":"brk-`, ``, ``},
		{``, ``, ``},
	} {
		if got := string(CutResponseID([]byte(c.head), []byte(c.tail))); got != c.want {
			t.Errorf("%s...%s: got %q, want %q", c.head, c.tail, got, c.want)
		}
	}
}

// Wherever a message is cut, the id found is its own.
func FuzzCutResponseID(f *testing.F) {
	for _, in := range []string{
		`{"jsonrpc":"2.0","id":"brk-7","result":{}}`,
		`{"result":{"id":"brk-1","s":"\",\"id\":\"brk-3\"}"},"id":"brk-7"}`,
		`{"result":{"a":{"id":"brk-1"}},"jsonrpc":"2.0","id":"brk-7"}`,
		`{"result":{"id":"brk-1","jsonrpc":"2.0"}}`,
	} {
		f.Add([]byte(in), uint16(20), uint16(20))
	}
	f.Fuzz(func(t *testing.T, in []byte, first, last uint16) {
		frame, err := Scan(in)
		if err != nil {
			return
		}
		var own []byte
		if frame.ID.Present() {
			own = frame.Raw(frame.ID)
		}
		head, tail := in[:min(int(first), len(in))], in[max(0, len(in)-int(last)):]
		if got := CutResponseID(head, tail); got != nil && !bytes.Equal(got, own) {
			t.Errorf("%q ... %q: got %s, want %s", head, tail, got, own)
		}
		if _, ok := ParseBrokerID(own); ok && !bytes.Contains(in, []byte(`\`)) && !bytes.Equal(CutResponseID(in, nil), own) {
			t.Errorf("%s: the id was not found", in)
		}
	})
}
