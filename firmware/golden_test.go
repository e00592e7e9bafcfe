package firmware

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"mcpbroker/brokertest"
)

// goldenCase is one case of test/golden/frames.txt.
type goldenCase struct {
	name string
	in   []byte   // as a server sends it
	want []string // of the device library
	own  []string // of the broker, where it differs
}

// events are what the broker is expected to do.
func (c goldenCase) events() []string {
	if len(c.own) > 0 {
		return c.own
	}
	return c.want
}

func readGolden(t *testing.T) []goldenCase {
	t.Helper()
	f, err := os.Open("test/golden/frames.txt")
	if err != nil {
		t.Fatalf("open the golden frames: %v", err)
	}
	defer f.Close()
	var cases []goldenCase
	for lines := bufio.NewScanner(f); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), " ")
		if key == "case" {
			cases = append(cases, goldenCase{name: value})
			continue
		}
		if key == "" || key == "#" {
			continue
		}
		c := &cases[len(cases)-1]
		switch key {
		case "in":
			b, err := hex.DecodeString(strings.ReplaceAll(value, " ", ""))
			if err != nil {
				t.Fatalf("case %s: %v", c.name, err)
			}
			c.in = append(c.in, b...)
		case "want":
			c.want = append(c.want, value)
		case "broker":
			c.own = append(c.own, value)
		default:
			t.Fatalf("case %s: unknown key %q", c.name, key)
		}
	}
	return cases
}

// asClient turns a server's bytes into a client's: the mask bit of each frame is
// the other way round, with a key of zeros where there was none.
func asClient(in []byte) []byte {
	var out []byte
	for len(in) >= 2 {
		head, length := 2, uint64(in[1]&0x7F)
		switch {
		case length == 126 && len(in) >= 4:
			head, length = 4, uint64(binary.BigEndian.Uint16(in[2:]))
		case length == 127 && len(in) >= 10:
			head, length = 10, binary.BigEndian.Uint64(in[2:])
		}
		masked := in[1]&0x80 != 0
		out = append(append(out, in[0], in[1]^0x80), in[2:head]...)
		in = in[head:]
		if masked {
			in = in[4:]
		} else {
			out = append(out, 0, 0, 0, 0)
		}
		n := min(length, uint64(len(in)))
		out, in = append(out, in[:n]...), in[n:]
	}
	return append(out, in...)
}

const goldenEnd = "end of the golden case"

// The broker's own WebSocket code is judged by the table the device library is
// judged by. Every frame that may come is waited for, then a ping of the test's
// own shows that nothing else came and that the connection still stands.
func TestGoldenFrames(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	for i, c := range readGolden(t) {
		t.Run(c.name, func(t *testing.T) {
			slot := "golden-" + strconv.Itoa(i)
			client := brokertest.Dial(t, b.ClientURL(slot), nil)
			b.Sessions(t, slot, 1)
			raw := brokertest.DialRaw(t, b.ProviderURL(slot))
			b.Connected(t, slot)
			raw.Write(asClient(c.in))
			ended := false
			for _, event := range c.events() {
				ended = goldenEvent(t, raw, client, event)
			}
			if !ended {
				raw.Frame(0x80|brokertest.OpPing, []byte(goldenEnd))
				wantFrame(t, raw, brokertest.OpPong, goldenEnd)
			}
			if extra := client.Pending(); extra != "" {
				t.Errorf("the client also received %s", extra)
			}
		})
	}
}

// goldenEvent waits for one event, and reports whether it ends the connection.
func goldenEvent(t *testing.T, raw *brokertest.Raw, client *brokertest.Socket, event string) bool {
	t.Helper()
	kind, rest, _ := strings.Cut(event, " ")
	switch kind {
	case "message":
		if got := client.Receive(); got != rest {
			t.Errorf("the client received %s, want %s", got, rest)
		}
	case "ping":
		wantFrame(t, raw, brokertest.OpPong, rest)
	case "pong", "nothing":
	case "waits":
		return true
	case "cut":
		if got, reason, _ := raw.Closed(); got != 1006 {
			t.Errorf("closed with %d %q, want no close frame", got, reason)
		}
		return true
	case "close", "error":
		code := strings.Fields(rest)[0]
		if kind == "error" {
			code = strings.Fields(rest)[1]
		}
		if got, reason, _ := raw.Closed(); strconv.Itoa(got) != code {
			t.Errorf("closed with %d %q, want %s", got, reason, code)
		}
		return true
	default:
		t.Fatalf("unknown event %q", event)
	}
	return false
}

func wantFrame(t *testing.T, raw *brokertest.Raw, opcode byte, payload string) {
	t.Helper()
	got, content, err := raw.Read()
	if err != nil || got != opcode || string(content) != payload {
		t.Errorf("frame of the broker: %s, want %s", describe(got, content, err), describe(opcode, []byte(payload), nil))
	}
}

func describe(opcode byte, payload []byte, err error) string {
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("opcode %d %q", opcode, payload)
}
