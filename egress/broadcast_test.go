package egress_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mcpbroker"
	"mcpbroker/brokertest"
)

// dialSocket opens a WebSocket. Its frames are read and written by hand.
func dialSocket(ctx context.Context, url string) (net.Conn, error) {
	host, path, _ := strings.Cut(strings.TrimPrefix(url, "ws://"), "/")
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", host)
	if err != nil {
		return nil, err
	}
	_, err = io.WriteString(conn, "GET /"+path+" HTTP/1.1\r\nHost: "+host+"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	if err == nil {
		// A buffer of one byte takes nothing that follows the answer.
		var resp *http.Response
		if resp, err = http.ReadResponse(bufio.NewReaderSize(oneByte{conn}, 16), nil); err == nil && resp.StatusCode != http.StatusSwitchingProtocols {
			err = fmt.Errorf("handshake: %s", resp.Status)
		}
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// oneByte reads a byte at a time.
type oneByte struct{ io.Reader }

// Read implements io.Reader.
func (r oneByte) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(len(p), 1)]) }

// audience is a number of connections that each wait for messages of one size.
type audience struct {
	conns []net.Conn
	left  atomic.Int64
	heard chan struct{} // once all have the message
}

func newAudience() *audience { return &audience{heard: make(chan struct{}, 1)} }

// join adds a connection whose messages have size bytes, framing included.
func (a *audience) join(conn net.Conn, size int) {
	a.conns = append(a.conns, conn)
	go func() {
		for message := make([]byte, size); ; {
			if _, err := io.ReadFull(conn, message); err != nil {
				return
			}
			if a.left.Add(-1) == 0 {
				a.heard <- struct{}{}
			}
		}
	}()
}

// tell says something and returns how long it took to reach the last.
func (a *audience) tell(say func()) time.Duration {
	a.left.Store(int64(len(a.conns)))
	began := time.Now()
	say()
	<-a.heard
	return time.Since(began)
}

func (a *audience) leave() {
	for _, conn := range a.conns {
		_ = conn.Close()
	}
}

// One notification of 200 B to 1,000 raw WebSocket clients, until the last has
// it, beside a bare loop that writes the same bytes to as many connections. The
// ratio is of medians that were taken in turns. Target: 1.5.
func BenchmarkBroadcast(b *testing.B) {
	const clients = 1000
	note := `{"jsonrpc":"2.0","method":"notifications/x","params":"` + strings.Repeat("x", 144) + `"}`
	frame := append([]byte{0x80 | brokertest.OpText, 126, 0, byte(len(note))}, note...)

	broker := quietBroker(b, mcpbroker.WithLogger(slog.New(slog.DiscardHandler)))
	p := broker.Dedicated(b, "s")
	relayed, bare := newAudience(), newAudience()
	defer relayed.leave()
	defer bare.leave()
	for range clients {
		conn, err := dialSocket(b.Context(), broker.ClientURL("s"))
		if err != nil {
			b.Fatal(err)
		}
		relayed.join(conn, len(frame))
	}
	broker.Sessions(b, "s", clients)
	writers := pairs(b, clients, func(conn net.Conn) { bare.join(conn, len(frame)) })

	loop := func() {
		for _, w := range writers {
			if _, err := w.Write(frame); err != nil {
				b.Error(err)
			}
		}
	}
	send := func() { p.Send(note) }
	for range 5 { // buffers and workers are there
		relayed.tell(send)
		bare.tell(loop)
	}
	var through, direct []float64
	for b.Loop() {
		through = append(through, float64(relayed.tell(send)))
		b.StopTimer()
		direct = append(direct, float64(bare.tell(loop)))
		b.StartTimer()
	}
	b.ReportMetric(middle(through)/middle(direct), "ratio")
	b.ReportMetric(middle(direct), "bare-ns/op")
}

// pairs connects n connections to a listener of its own: join gets the far ends,
// the near ones are returned.
func pairs(b *testing.B, n int, join func(net.Conn)) []net.Conn {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	var near []net.Conn
	for range n {
		far, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		join(far)
		conn, err := l.Accept()
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = conn.Close() })
		near = append(near, conn)
	}
	return near
}

func middle(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
