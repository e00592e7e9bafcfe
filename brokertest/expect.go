package brokertest

import "testing"

// Equal compares two texts whole.
func Equal(t testing.TB, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}

// Is compares a whole answer: its status and its body.
func Is(t testing.TB, what string, a Answer, status int, body string) {
	t.Helper()
	if a.Status != status || a.Body != body {
		t.Errorf("%s:\n got %d %s\nwant %d %s", what, a.Status, a.Body, status, body)
	}
}
