package wire

import "testing"

// The rows of spec 01 1.1, as the text behind the prefix and before the query.
func TestDecodeSlot(t *testing.T) {
	for raw, want := range map[string]string{
		"":                      "",
		"a":                     "a",
		"a%2Fb":                 "a/b",
		"a%2fb":                 "a/b",
		"%2Fsite-a%2Fline-3":    "/site-a/line-3",
		"%zz":                   "%zz",
		"a/b/c":                 "a/b/c",
		"/x":                    "/x",
		"providers/":            "providers/",
		"%70rovider/x":          "provider/x",
		"a+b":                   "a+b",
		"a%2Bb":                 "a+b",
		"a%20b":                 "a b",
		"%C3%A9":                "é",
		"é":                     "é",
		"%E8%AF%BB%F0%9F%8E%89": "读🎉",
		"%25":                   "%",
		"%2525":                 "%25",
		"%00":                   "\x00",
		"%":                     "%",
		"%2":                    "%2",
		"a%":                    "a%",
		"a%2":                   "a%2",
		"a%2Fb%zz":              "a%2Fb%zz", // one bad escape keeps all of the raw text
		"%ff":                   "%ff",      // not UTF-8
		"%C3":                   "%C3",
		"a%2F%C3%28":            "a%2F%C3%28",
		"%ED%A0%80":             "%ED%A0%80", // a surrogate
		"%u0041":                "%u0041",
	} {
		if got := DecodeSlot(raw); got != want {
			t.Errorf("DecodeSlot(%q) = %q, want %q", raw, got, want)
		}
	}
}

func TestEncodeSlot(t *testing.T) {
	for slot, want := range map[string]string{
		"":                 "",
		"pump-1":           "pump-1",
		"a/b":              "a%2Fb",
		"a/":               "a%2F",
		"AZaz09-_.!~*'()":  "AZaz09-_.!~*'()",
		" +%?#&=@:,;$[]":   "%20%2B%25%3F%23%26%3D%40%3A%2C%3B%24%5B%5D",
		"é🎉":               "%C3%A9%F0%9F%8E%89",
		"\x00\x7f\u2028\"": "%00%7F%E2%80%A8%22",
	} {
		if got := EncodeSlot(slot); got != want {
			t.Errorf("EncodeSlot(%q) = %q, want %q", slot, got, want)
		}
		if got := DecodeSlot(want); got != slot {
			t.Errorf("DecodeSlot(%q) = %q, want %q", want, got, slot)
		}
	}
}

// F-05: both names are reserved, and only these.
func TestReserved(t *testing.T) {
	for slot, want := range map[string]bool{"_broker": true, "_all": true, "": false, "_ALL": false, "_all ": false, "_x": false} {
		if got := Reserved(slot); got != want {
			t.Errorf("Reserved(%q) = %v", slot, got)
		}
	}
}
