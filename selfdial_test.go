package mcpbroker

import (
	"net/netip"
	"net/url"
	"testing"
)

func TestReaches(t *testing.T) {
	own := func() []netip.Addr {
		return []netip.Addr{netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("fe80::1")}
	}
	tests := []struct {
		to, bound string
		want      bool
	}{
		{"127.0.0.1", "127.0.0.1", true},
		{"127.0.0.2", "127.0.0.1", false},
		{"::1", "127.0.0.1", false},
		{"0.0.0.0", "127.0.0.1", true},
		{"0.0.0.0", "192.0.2.7", false},
		{"::ffff:127.0.0.1", "127.0.0.1", true},
		{"192.0.2.7", "127.0.0.1", false},
		{"192.0.2.7", "0.0.0.0", true},
		{"192.0.2.7", "::", true},
		{"192.0.2.8", "::", false},
		{"127.0.0.2", "::", true},
		{"fe80::1%eth0", "::", true},
		{"192.0.2.7", "192.0.2.7", true},
	}
	for _, tt := range tests {
		if got := reaches(netip.MustParseAddr(tt.to), netip.MustParseAddr(tt.bound), own); got != tt.want {
			t.Errorf("to %s, bound to %s: %v, want %v", tt.to, tt.bound, got, tt.want)
		}
	}
}

func TestPortOf(t *testing.T) {
	for text, want := range map[string]int{
		"http://h/a": 80, "https://h/a": 443, "ws://h/a": 80, "wss://h/a": 443, "http://h:3000/a": 3000, "https://[::1]:8443": 8443,
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := portOf(u); got != want {
			t.Errorf("%s: port %d, want %d", text, got, want)
		}
	}
}
