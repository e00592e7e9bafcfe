package firmware

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"mcpbroker/brokertest"
)

// spec 04 15, stalled peer: a handshake that never ends, silent or dripping, is
// given up after its timeout.
func TestHandshakeStalls(t *testing.T) {
	for name, flags := range map[string][]string{"blocking": nil, "stepwise": {"--stepwise"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handshakeStalls(t, flags...)
		})
	}
}

func handshakeStalls(t *testing.T, flags ...string) {
	t.Helper()
	s := listen(t)
	device := startDevice(t, s.port(), append([]string{"--name", "d", "--handshake-timeout=300"}, flags...)...)
	p := s.accept()
	p.request("/provider/d")
	p.gone()
	device.next(retryFailed + `error=".*time.*" .*attempts=1 `)

	p = s.accept()
	key := p.request("/provider/d")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	dripped := make(chan struct{})
	go func() {
		defer close(dripped)
		p.drip(ctx, accepted(key), 20*time.Millisecond) // 2.6 s in all
	}()
	p.gone()
	device.next(retryFailed + `error=".*time.*" .*attempts=2 `)
	cancel()
	<-dripped
	s.recovers("/provider/d")
}

// recovers sees a device come back after a loss and serve. Its time limits are short in
// these tests: on a busy machine it may give up an attempt that was answered late, and
// then tries again.
func (s *wsServer) recovers(path string) {
	s.t.Helper()
	for late := time.Now().Add(patience); ; {
		p := s.accept()
		if key := p.request(path); p.answers(accepted(key)+frame(fin|opText, ping("0"))) == pong("0") {
			return
		}
		if time.Now().After(late) {
			s.t.Fatalf("no connection of the device has served within %s", patience)
		}
	}
}

// answers sends bytes and returns the next text of the device, "" when it has hung up.
func (p *wsPeer) answers(text string) string {
	_, _ = io.WriteString(p.conn, text)
	for {
		opcode, payload, err := p.read()
		if err != nil || opcode == opText {
			return payload
		}
	}
}

// serves sees a device serve.
func (p *wsPeer) serves(t *testing.T) {
	t.Helper()
	p.write(frame(fin|opText, ping("0")))
	brokertest.Equal(t, "answer", p.text(), pong("0"))
}

// a device that is fed one byte at a time serves, however long it waits
// between them, and keeps the link up meanwhile.
func TestDrippingPeer(t *testing.T) {
	t.Parallel()
	s := listen(t)
	device := startDevice(t, s.port(), "--name", "d", "--ping-interval=100", "--pong-timeout=20000")
	p := s.serve("/provider/d")
	p.drip(t.Context(), frame(fin|opText, ping("1")), 30*time.Millisecond) // 1.2 s in all
	brokertest.Equal(t, "answer", p.text(), pong("1"))
	if n := device.count(disconnected); n != 0 {
		t.Errorf("the device gave up %d times", n)
	}
}

// a peer that answers nothing is dropped after the pong timeout.
func TestNoPong(t *testing.T) {
	t.Parallel()
	s := listen(t)
	device := startDevice(t, s.port(), "--name", "d", "--ping-interval=100", "--pong-timeout=250")
	p := s.serve("/provider/d")
	opcode, payload, err := p.read()
	if err != nil || opcode != opPing || payload != "" {
		t.Errorf("opcode %d %q %v, want an empty ping (R-40)", opcode, payload, err)
	}
	device.next(disconnected + `error=".*time.*" detail="no pong" next_retry_ms=`)
	s.recovers("/provider/d")
}

// D-04: a peer that does not read ends a send after its timeout.
func TestPeerDoesNotRead(t *testing.T) {
	t.Parallel()
	s := listen(t)
	device := startDevice(t, s.port(), "--name", "d", "--send-timeout=4000", "--rx=100000", "--quiet")
	p := s.serve("/provider/d")
	ctx, cancel := context.WithCancel(t.Context())
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		message := frame(fin|opText, ping(`"`+strings.Repeat("i", 60000)+`"`))
		for ctx.Err() == nil {
			if _, err := io.WriteString(p.conn, message); err != nil {
				return
			}
		}
	}()
	device.next(disconnected + `error=".*" detail="send timed out" `)
	cancel()
	_ = p.conn.Close()
	<-fed
	s.recovers("/provider/d")
}
