package wire

import (
	"strings"
	"testing"
)

// spec 01 4.2: W3C version 00, lower case, neither id all zero.
func TestValidTraceparent(t *testing.T) {
	const id, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	for _, good := range []string{
		fresh, kept, "00-" + id + "-" + parent + "-ff",
		"00-" + strings.Repeat("0", 31) + "1-" + strings.Repeat("0", 15) + "1-00",
	} {
		if !ValidTraceparent([]byte(good)) {
			t.Errorf("%q refused", good)
		}
	}
	for _, bad := range []string{
		"", "00", "01-" + id + "-" + parent + "-01", "ff-" + id + "-" + parent + "-01",
		"00-" + strings.ToUpper(id) + "-" + parent + "-01",
		"00-" + id + "-" + strings.ToUpper(parent) + "-01",
		"00-" + id + "-" + parent + "-0A",
		"00-" + strings.Repeat("0", 32) + "-" + parent + "-01",
		"00-" + id + "-" + strings.Repeat("0", 16) + "-01",
		"00-" + id[1:] + "g-" + parent + "-01",
		"00-" + id + "-" + parent[1:] + "x-01",
		"00-" + id + "-" + parent + "-0", "00-" + id + "-" + parent + "-011", "00-" + id + "-" + parent + "-01-x",
		"00_" + id + "-" + parent + "-01", "00-" + id + "_" + parent + "-01", "00-" + id + "-" + parent + "_01",
		" 00-" + id + "-" + parent + "-1", "00-" + id + "-" + parent + "-0 ",
	} {
		if ValidTraceparent([]byte(bad)) {
			t.Errorf("%q accepted", bad)
		}
	}
}

func TestTraceparent(t *testing.T) {
	var random [24]byte
	zero := Traceparent(random)
	if want := "00-01000000000000000000000000000000-0100000000000000-01"; zero != want {
		t.Errorf("Traceparent of zeroes = %q, want %q", zero, want)
	}
	for i := range random {
		random[i] = byte(0xe8 + i)
	}
	if got, want := Traceparent(random), "00-e9e9eaebecedeeeff0f1f2f3f4f5f6f7-f9f9fafbfcfdfeff-01"; got != want {
		t.Errorf("Traceparent = %q, want %q", got, want)
	}
	for _, s := range []string{zero, Traceparent(random)} {
		if !ValidTraceparent([]byte(s)) {
			t.Errorf("%q is not valid", s)
		}
	}
}
