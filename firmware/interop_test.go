package firmware

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mcpbroker/brokertest"
)

func ping(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}` }

func pong(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":{}}` }

// spec 04 15, interoperability: against a server that follows RFC 6455 and nothing
// of ours, every length form, fragments, control frames between them, and bytes in
// any portions.
func TestInterop(t *testing.T) {
	t.Parallel()
	s := listen(t)
	device := startDevice(t, s.port(), "--name", "line 3/ä", "--token", "secret", "--rx=200000")
	p := s.accept()
	key := p.request("/provider/line%203%2F%C3%A4")
	if got := p.header["x-provider-token"]; got != "secret" {
		t.Errorf("X-Provider-Token: %q", got)
	}
	// what is glued to the answer belongs to the first frame.
	p.write(accepted(key) + frame(fin|opPing, "glued"))
	expectPong(t, p, "glued")

	for _, size := range []int{1, 50, 64, 100, 1000, 65470, 65536, 100000} {
		id := `"` + strings.Repeat("i", size) + `"`
		p.write(frame(fin|opText, ping(id)))
		brokertest.Equal(t, fmt.Sprint("answer to an id of ", size, " bytes"), p.text(), pong(id))
	}
	text := ping(`"ä€😀"`)
	for at := range len(text) {
		p.write(frame(opText, text[:at]) + frame(fin|opPing, "mid") + frame(opContinuation, "") + frame(fin|opContinuation, text[at:]))
		expectPong(t, p, "mid")
		brokertest.Equal(t, "answer to fragments", p.text(), pong(`"ä€😀"`))
	}
	p.drip(t.Context(), frame(fin|opPong, "unasked")+frame(fin|opText, ping(`7`)), time.Millisecond)
	brokertest.Equal(t, "answer to single bytes", p.text(), pong(`7`))

	// the code is echoed, the reason is not.
	p.write(closeFrame(4000, "enough \"said\"\x01"))
	if code, rest := p.closed(); code != 4000 || rest != "" {
		t.Errorf("the device closed with %d %q", code, rest)
	}
	device.next(disconnected + `error=".+" code=4000 reason="enough \\"said\\"\\x01" `)
	next := s.serve("/provider/line%203%2F%C3%A4")
	next.write(frame(fin|opText, ping(`8`)))
	brokertest.Equal(t, "answer after the reconnect", next.text(), pong(`8`))
}

func expectPong(t *testing.T, p *wsPeer, payload string) {
	t.Helper()
	opcode, got, err := p.read()
	if err != nil || opcode != opPong || got != payload {
		t.Fatalf("opcode %d %q %v, want a pong with %q", opcode, got, err, payload)
	}
}

// what no server may send, and the close code that answers it.
func TestViolations(t *testing.T) {
	t.Parallel()
	s := listen(t)
	device := startDevice(t, s.port(), "--name", "d", "--rx=1024")
	for _, v := range []struct {
		rule, bytes string
		code        int
	}{
		{"R-12 reserved bit", "\xC1\x00", 1002},
		{"R-13 mask", "\x81\x81\x00\x00\x00\x00x", 1002},
		{"R-14 opcode 3", "\x83\x00", 1002},
		{"R-14 opcode 11", "\x8B\x00", 1002},
		{"R-15 binary", "\x82\x01x", 1003},
		{"R-16 continuation without start", "\x80\x00", 1002},
		{"R-16 text inside a message", "\x01\x01x\x81\x01x", 1002},
		{"R-17 long ping", "\x89\x7E\x00\x7E", 1002},
		{"R-17 fragmented ping", "\x09\x00", 1002},
		{"R-18 top bit", "\x81\x7F\x80\x00\x00\x00\x00\x00\x00\x00", 1002},
		{"R-19 length 1 in 16 bits", "\x81\x7E\x00\x01", 1002},
		{"R-19 length 126 in 64 bits", "\x81\x7F\x00\x00\x00\x00\x00\x00\x00\x7E", 1002},
		{"R-20 one frame", "\x81\x7E\x08\x00", 1009},
		{"R-20 the sum", frame(opText, strings.Repeat("x", 1000)) + "\x80\x7E\x00\xC8", 1009},
		{"R-26 beyond 32 bits", "\x81\x7F\x00\x00\x00\x01\x00\x00\x00\x10", 1009},
		{"R-24 close of 1 byte", "\x88\x01x", 1002},
		{"R-24 close 1005", closeFrame(1005, ""), 1002},
		{"R-24 close 2999", closeFrame(2999, ""), 1002},
		{"R-25 not UTF-8", "\x81\x02\xC3\x28", 1007},
	} {
		p := s.serve("/provider/d")
		p.write(v.bytes)
		if code, _ := p.closed(); code != v.code {
			t.Errorf("%s: closed with %d, want %d", v.rule, code, v.code)
		}
		p.gone()
		device.next(disconnected + `error="[^"]+" detail=".+" next_retry_ms=`)
	}
}

// answers that are no acceptance.
func TestRefusedHandshakes(t *testing.T) {
	t.Parallel()
	s := listen(t)
	device := startDevice(t, s.port(), "--name", "d", "--rx=1024")
	const switching = "HTTP/1.1 101 Switching Protocols\r\n"
	upgrade := "Upgrade: websocket\r\nConnection: Upgrade\r\n"
	for _, v := range []struct {
		rule   string
		answer func(key string) string
		event  string
	}{
		{"R-04 401", func(string) string {
			return "HTTP/1.1 401 Unauthorized\r\nContent-Length: 12\r\n\r\nUnauthorized"
		}, `http_status=401`},
		{"R-04 403", func(string) string { return "HTTP/1.1 403 Forbidden\r\n\r\n" }, `http_status=403`},
		{"R-04 redirection", func(string) string { return "HTTP/1.1 302 Found\r\nLocation: ws://127.0.0.1:1/\r\n\r\n" }, `http_status=302`},
		{"R-04 not HTTP", func(string) string { return "SSH-2.0-OpenSSH\r\n\r\n" }, `detail="`},
		{"R-05 wrong accept", func(string) string {
			return switching + upgrade + "Sec-WebSocket-Accept: " + acceptFor("x") + "\r\n\r\n"
		}, `detail="`},
		{"R-05 no accept", func(string) string { return switching + upgrade + "\r\n" }, `detail="`},
		{"R-06 extension", func(key string) string {
			return strings.Replace(accepted(key), "\r\n\r\n", "\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n", 1)
		}, `detail="`},
		{"R-07 no Upgrade", func(key string) string { return strings.Replace(accepted(key), "Upgrade: websocket\r\n", "", 1) }, `detail="`},
		{"R-07 no Connection", func(key string) string { return strings.Replace(accepted(key), "Connection: Upgrade\r\n", "", 1) }, `detail="`},
		{"R-07 subprotocol", func(key string) string {
			return strings.Replace(accepted(key), "\r\n\r\n", "\r\nSec-WebSocket-Protocol: mcp\r\n\r\n", 1)
		}, `detail="`},
		{"R-09 head larger than the buffer", func(string) string { return switching + strings.Repeat("X-A: b\r\n", 200) }, `detail="`},
	} {
		p := s.accept()
		key := p.request("/provider/d")
		p.write(v.answer(key))
		p.gone()
		line := device.next(retryFailed + `.*$`)[0]
		if !strings.Contains(line, v.event) {
			t.Errorf("%s: %s, want %s", v.rule, line, v.event)
		}
	}
	// names of headers have no case, and a list may hold more.
	p := s.accept()
	key := p.request("/provider/d")
	p.write("HTTP/1.1 101 Whatever\r\nserver: x\r\nCONNECTION: keep-alive, upgrade\r\nupgrade: WebSocket\r\nsec-websocket-accept:" + acceptFor(key) + "\r\n\r\n")
	p.write(frame(fin|opText, ping("1")))
	brokertest.Equal(t, "answer", p.text(), pong("1"))
}
