package slot

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbroker/actors/wire"
)

// A call that is sent again goes as it would have gone at first, whatever its client
// wrote into it: only the numbers of the broker differ.
func TestAgain(t *testing.T) {
	const other = "00-ffffffffffffffffffffffffffffffff-ffffffffffffffff-01"
	for _, text := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"m"}`,
		`{"method":"m","id":"x\u0041","params":{}}`,
		`{"id":-0.0e1,"method":"m","params":[{"_meta":{}}]}`,
		`{"id":1,"method":"m","params":"text"}`,
		`{"id":1,"method":"m","params":{"_meta":7}}`,
		`{"id":1,"method":"m","params":{"_meta":{}}}`,
		`{"id":1,"method":"m","params":{"_meta":{"progressToken":"brk-1"}}}`,
		`{"params":{"_meta":{"progressToken":1.0,"traceparent":"` + trace + `"},"n":1e400},"method":"m","id":"brk-1"}`,
		`{"id":1,"method":"m","params":{"_meta":{"traceparent":[]}}}`,
		`{"id":1,"method":"m","params":{"_meta":{"` + wire.CallerKey + `":{"a":1}}}}`,
		`{"id":1,"method":"m","params":{"_meta":{"progressToken":"t","` + wire.CallerKey + `":1,"traceparent":"no"}}}`,
		"{ \"id\" : 1 ,\n\"method\":\"m\", \"params\" : { \"_meta\" : { \"progressToken\" : \"\" } } }",
	} {
		f := mustScan(text)
		c := &call{id: 1, session: 2, number: 3, origID: bytes.Clone(f.Raw(f.ID))}
		if f.Token.Present() {
			c.token = bytes.Clone(f.Raw(f.Token))
		}
		unsent := mustScan(string(wire.ToProvider(&f, 1, trace)))
		c.unsent = &unsent
		m := again(c)
		want := string(wire.ToProvider(&f, 4, trace))
		if diff := cmp.Diff(want, string(wire.ToProvider(&m.Frame, 4, other))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
		if diff := cmp.Diff(string(c.origID), string(m.Frame.Raw(m.Frame.ID))); diff != "" {
			t.Errorf("id of %s (-want +got):\n%s", text, diff)
		}
		if m.Session != 2 || m.Call != 3 || !m.Retried {
			t.Errorf("%s: %+v", text, m)
		}
	}
}
