package wire

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every message of the table keeps its frame inside an envelope, with offsets
// into its own bytes, whatever stands around it.
func TestScanEnvelopeTable(t *testing.T) {
	for _, c := range byteCases() {
		for _, wrapped := range []string{
			`{"provider":"s","payload":` + c.in + `}`,
			`{"payload":` + c.in + `,"provider":"s"}`,
			" {\n\"x\":[{\"payload\":1}], \"\\u0070rovider\" : \"\\u0073\" , \"payload\" :\t" + c.in + " , \"jsonrpc\":\"2.0\" } ",
		} {
			env, _, ok, err := ScanEnvelope([]byte(wrapped))
			if err != nil || !ok {
				t.Errorf("%s: ScanEnvelope(%s): ok %v, err %v", c.name, wrapped, ok, err)
				continue
			}
			if env.Slot != "s" {
				t.Errorf("%s: slot %q, want s", c.name, env.Slot)
			}
			if want := strings.Trim(c.in, " \t\r\n"); string(env.Payload.Bytes) != want {
				t.Errorf("%s: payload %q, want %q", c.name, env.Payload.Bytes, want)
			}
			if diff := cmp.Diff(c.want, viewOf(&env.Payload)); diff != "" {
				t.Errorf("%s: payload of %s (-want +got):\n%s", c.name, wrapped, diff)
			}
			if c.sent == "" {
				continue
			}
			if got := ToProvider(&env.Payload, caseID, fresh); string(got) != c.sent {
				t.Errorf("%s: ToProvider of the payload\n got %s\nwant %s", c.name, got, c.sent)
			}
		}
	}
}

// spec 01 3.1: what is no envelope comes back as the plain message it is.
func TestScanEnvelopePlain(t *testing.T) {
	for _, in := range []string{
		`{}`, `[]`, `null`, `1`, `"x"`, `[{"provider":"s","payload":1}]`,
		`{"jsonrpc":"2.0","id":1,"method":"m"}`,
		`{"provider":"s"}`, `{"payload":{}}`, `{"provider":"","payload":{}}`,
		`{"provider":1,"payload":{}}`, `{"provider":null,"payload":{}}`, `{"provider":["s"],"payload":{}}`,
		`{"Provider":"s","Payload":{}}`, `{"x":{"provider":"s","payload":{}}}`,
		`{"payload":{"provider":"s"}}`,
	} {
		env, outer, ok, err := ScanEnvelope([]byte(in))
		if ok || err != nil {
			t.Errorf("ScanEnvelope(%s) = %+v, ok %v, err %v, want no envelope", in, env, ok, err)
		}
		if diff := cmp.Diff(viewOf(scanned(t, in)), viewOf(&outer)); diff != "" {
			t.Errorf("outer of %s (-want +got):\n%s", in, diff)
		}
	}
}

func TestScanEnvelopeRefuses(t *testing.T) {
	for name, in := range invalidCases() {
		if _, _, ok, err := ScanEnvelope([]byte(in)); ok || !errors.Is(err, ErrSyntax) {
			t.Errorf("%s: ScanEnvelope(%q): ok %v, err %v, want ErrSyntax", name, in, ok, err)
		}
		if _, _, ok, err := ScanEnvelope([]byte(`{"provider":"s","payload":` + in + `}`)); ok || err == nil {
			t.Errorf("%s: accepted as a payload", name)
		}
	}
	for _, in := range []string{
		`{"provider":"a","provider":"b","payload":1}`,
		`{"provider":1,"payload":1,"\u0070rovider":"b"}`,
		`{"payload":1,"provider":"a","payload":2}`,
		`{"payload":1,"payl\u006fad":2}`,
		`{"provider":"a","payload":{"id":1,"id":2}}`,
		`{"payload":{"params":{"_meta":{"traceparent":1,"traceparent":1}}},"provider":"a"}`,
	} {
		if _, _, ok, err := ScanEnvelope([]byte(in)); ok || !errors.Is(err, ErrDuplicate) {
			t.Errorf("ScanEnvelope(%s): ok %v, err %v, want ErrDuplicate", in, ok, err)
		}
	}
	const apart = `{"payload":{"payload":1,"provider":2},"provider":"a"}`
	if env, _, ok, err := ScanEnvelope([]byte(apart)); !ok || err != nil || string(env.Payload.Raw(env.Payload.Payload)) != "1" {
		t.Errorf("ScanEnvelope(%s): ok %v, err %v", apart, ok, err)
	}
}

// A payload may nest as deeply as the same message without an envelope.
func TestScanEnvelopeDepth(t *testing.T) {
	for _, kind := range []string{"arrays", "objects", "mixed"} {
		for _, order := range [][2]string{{`{"provider":"s","payload":`, `}`}, {`{"payload":`, `,"provider":"s"}`}} {
			_, _, ok, err := ScanEnvelope([]byte(order[0] + nested(kind, MaxDepth) + order[1]))
			if !ok || err != nil {
				t.Errorf("%s at depth %d: ok %v, err %v", kind, MaxDepth, ok, err)
			}
			_, _, ok, err = ScanEnvelope([]byte(order[0] + nested(kind, MaxDepth+1) + order[1]))
			if ok || !errors.Is(err, ErrDepth) {
				t.Errorf("%s at depth %d: ok %v, err %v, want ErrDepth", kind, MaxDepth+1, ok, err)
			}
		}
	}
}

func TestWrap(t *testing.T) {
	// T3 of spec 01 11
	const want = `{"provider":"_all","payload":{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Provider \"_all\" is reserved by the broker"}}}`
	if got := Wrap("_all", ReservedSlot("_all").Response(nil)); string(got) != want {
		t.Errorf("Wrap = %s\nwant   %s", got, want)
	}
	for _, slot := range []string{"s", `a"\b`, "é🎉", "a/b", "\x00\n", " "} {
		env, _, ok, err := ScanEnvelope(Wrap(slot, []byte(`{"id":1}`)))
		if err != nil || !ok || env.Slot != slot || string(env.Payload.Bytes) != `{"id":1}` {
			t.Errorf("ScanEnvelope(Wrap(%q)) = %q %s, ok %v, err %v", slot, env.Slot, env.Payload.Bytes, ok, err)
		}
	}
}
