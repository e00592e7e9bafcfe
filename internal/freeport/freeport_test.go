package freeport

import (
	"net"
	"strconv"
	"testing"

	"mcpbroker/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// A port that is reserved is free for a server, and nobody else's until release.
func TestReserve(t *testing.T) {
	port, release, err := Reserve(2)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 2 {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port+n)))
		if err != nil {
			t.Fatalf("listen on a reserved port: %v", err)
		}
		defer l.Close()
	}
	for _, at := range []int{port - 1, port, port + 1} {
		if _, err := reserve(at, 2); err == nil {
			t.Errorf("%d and the next are reserved twice", at)
		}
	}
	release()
	if _, err := reserve(port, 1); err == nil {
		t.Error("a port with a server was free")
	}
	if mark, err := net.ListenPacket("udp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err != nil {
		t.Errorf("a mark was left behind: %v", err)
	} else {
		_ = mark.Close()
	}
}
