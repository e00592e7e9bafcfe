package wire

import (
	"strings"
	"unicode/utf8"
)

// The slots the broker itself serves. Both names are reserved whether or not
// something serves them yet (F-05).
const (
	SlotBroker    = "_broker"
	SlotAggregate = "_all"
)

// Reserved reports a slot name no provider may claim.
func Reserved(slot string) bool { return slot == SlotBroker || slot == SlotAggregate }

// DecodeSlot percent-decodes a slot name out of a URL. Where an escape is
// malformed or the result is not UTF-8 the raw text is the name; "+" stays "+"
// (spec 01 1.1, F-01, F-02).
func DecodeSlot(raw string) string {
	if !strings.Contains(raw, "%") {
		return raw
	}
	b := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '%' {
			b = append(b, raw[i])
			continue
		}
		if i+2 >= len(raw) || !isHex(raw[i+1]) || !isHex(raw[i+2]) {
			return raw
		}
		b = append(b, unhex(raw[i+1])<<4|unhex(raw[i+2]))
		i += 2
	}
	if !utf8.Valid(b) {
		return raw
	}
	return string(b)
}

// EncodeSlot percent-encodes a slot name as one URL segment, leaving
// A-Z a-z 0-9 - _ . ! ~ * ' ( ) as they are.
func EncodeSlot(slot string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(slot) {
		c := slot[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-_.!~*'()", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(digits[c>>4])
		b.WriteByte(digits[c&15])
	}
	return b.String()
}

func unhex(c byte) byte {
	switch {
	case c >= 'a':
		return c - 'a' + 10
	case c >= 'A':
		return c - 'A' + 10
	}
	return c - '0'
}
