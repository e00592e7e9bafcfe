package wire

import (
	"bytes"
	"encoding/json"
	"testing"
)

func scanned(t testing.TB, in string) *Frame {
	t.Helper()
	f, err := Scan([]byte(in))
	if err != nil {
		t.Fatalf("Scan(%q): %v", in, err)
	}
	return &f
}

// T1 of spec 01 11, and everything else a relayed request may hold.
func TestToProviderTable(t *testing.T) {
	for _, c := range byteCases() {
		if c.sent == "" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			f := scanned(t, c.in)
			got := ToProvider(f, caseID, fresh)
			if string(got) != c.sent {
				t.Errorf("ToProvider(%s)\n got %s\nwant %s", c.in, got, c.sent)
			}
			if !json.Valid(got) {
				t.Error("the result is not valid JSON")
			}
			if carries := bytes.Contains(got, []byte(fresh)); carries != f.NeedsTrace() {
				t.Errorf("NeedsTrace = %v, the result carries the fresh trace: %v", f.NeedsTrace(), carries)
			}
			if again, err := Scan([]byte(c.in)); err != nil || string(again.Bytes) != string(f.Bytes) {
				t.Error("the source frame was changed")
			}
		})
	}
}

// All edits of one frame at once, in either order of the members.
func TestToProviderEveryEdit(t *testing.T) {
	const in = `{"id":"x","params":{"_meta":{"progressToken":"p",` + caller + `:[],"traceparent":"no"}},"method":"m"}`
	const want = `{"id":"brk-18446744073709551615","params":{"_meta":{"progressToken":"brk-18446744073709551615",` + tp + `}},"method":"m"}`
	if got := ToProvider(scanned(t, in), 1<<64-1, fresh); string(got) != want {
		t.Errorf("ToProvider\n got %s\nwant %s", got, want)
	}
	const turned = `{"method":"m","params":{"_meta":{` + caller + `:[],"progressToken":3}},"id":0}`
	const wantTurned = `{"method":"m","params":{"_meta":{` + tp + `,"progressToken":18446744073709551615}},"id":"brk-18446744073709551615"}`
	if got := ToProvider(scanned(t, turned), 1<<64-1, fresh); string(got) != wantTurned {
		t.Errorf("ToProvider\n got %s\nwant %s", got, wantTurned)
	}
}

func TestNoteToProviderTable(t *testing.T) {
	for _, c := range byteCases() {
		if c.told == "" {
			continue
		}
		f := scanned(t, c.in)
		if got := NoteToProvider(f); string(got) != c.told {
			t.Errorf("%s: NoteToProvider(%s)\n got %s\nwant %s", c.name, c.in, got, c.told)
		}
	}
}

func TestWithID(t *testing.T) {
	f := scanned(t, `{"jsonrpc":"2.0","id":"brk-1","result":{"tools":[]}}`)
	for id, want := range map[string]string{
		"5":                    `{"jsonrpc":"2.0","id":5,"result":{"tools":[]}}`,
		`"z"`:                  `{"jsonrpc":"2.0","id":"z","result":{"tools":[]}}`,
		"1.5":                  `{"jsonrpc":"2.0","id":1.5,"result":{"tools":[]}}`,
		"12345678901234567890": `{"jsonrpc":"2.0","id":12345678901234567890,"result":{"tools":[]}}`,
	} {
		if got := WithID(f, []byte(id)); string(got) != want {
			t.Errorf("WithID(%s) = %s, want %s", id, got, want)
		}
	}
}

func TestReplace(t *testing.T) {
	f := scanned(t, `{"method":"notifications/progress","params":{"progress":1,"progressToken":"brk-1"}}`)
	const want = `{"method":"notifications/progress","params":{"progress":1,"progressToken":7.0}}`
	if got := Replace(f, f.Progress, []byte("7.0")); string(got) != want {
		t.Errorf("Replace = %s, want %s", got, want)
	}
}

func TestBrokerIDs(t *testing.T) {
	for _, n := range []uint64{1, 9, 10, 4294967296, 18446744073709551615} {
		raw := AppendBrokerID(nil, n)
		if got, ok := ParseBrokerID(raw); !ok || got != n {
			t.Errorf("ParseBrokerID(%s) = %d, %v", raw, got, ok)
		}
		if got, ok := ParseToken(raw); !ok || got != n {
			t.Errorf("ParseToken(%s) = %d, %v", raw, got, ok)
		}
		if got, ok := ParseToken(raw[len(`"brk-`) : len(raw)-1]); !ok || got != n {
			t.Errorf("ParseToken of the number in %s = %d, %v", raw, got, ok)
		}
	}
	for _, raw := range []string{
		``, `"`, `""`, `"brk-`, `"brk-"`, `"brk-0"`, `"brk-01"`, `"brk--1"`, `"brk-+1"`, `"brk-1 "`, `" brk-1"`,
		`"brk-1_0"`, `"brk-1.0"`, `"brk-1e1"`, `"brk-18446744073709551616"`, `"brk-184467440737095516150"`,
		`"BRK-1"`, `"brk-1`, `brk-1"`, `brk-1`, `"brk-\u0031"`, `"brk-x"`, `"brk-0x1"`, `null`, `{}`, `"1"`,
	} {
		if n, ok := ParseBrokerID([]byte(raw)); ok {
			t.Errorf("ParseBrokerID(%s) = %d, want refused", raw, n)
		}
		if n, ok := ParseToken([]byte(raw)); ok {
			t.Errorf("ParseToken(%s) = %d, want refused", raw, n)
		}
	}
	for _, raw := range []string{`0`, `01`, `-1`, `+1`, `1.0`, `1e1`, `1 `, `18446744073709551616`, `null`} {
		if n, ok := ParseToken([]byte(raw)); ok {
			t.Errorf("ParseToken(%s) = %d, want refused", raw, n)
		}
	}
}
