package stdio

import "testing"

// Security: what a child was told in confidence is not passed on to its callers.
func TestMasking(t *testing.T) {
	mask := masking([]string{"hunter2hunter2", "hunter2", "12345", "", "tok-äöü-9"})
	for in, want := range map[string]string{
		"401 with key hunter2hunter2!": "401 with key ***!",
		"hunter2 and hunter2hunter2":   "*** and ***",
		"port 12345 is in use":         "port 12345 is in use",
		"tok-äöü-9|tok-äöü-9":          "***|***",
		"":                             "",
	} {
		if got := mask(in); got != want {
			t.Errorf("mask(%q) = %q, want %q", in, got, want)
		}
	}
	if got := masking(nil)("as it is"); got != "as it is" {
		t.Errorf("without secrets: %q", got)
	}
}
