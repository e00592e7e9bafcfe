package wire

import "encoding/hex"

// traceparentLen is the length of a version 00 W3C traceparent.
const traceparentLen = 55

// ValidTraceparent reports a W3C version 00 traceparent: lower-case hex, trace
// id and parent id not all zero (spec 01 4.2).
func ValidTraceparent(b []byte) bool {
	if len(b) != traceparentLen || string(b[:3]) != "00-" || b[35] != '-' || b[52] != '-' {
		return false
	}
	return lowerHex(b[3:35]) && lowerHex(b[36:52]) && lowerHex(b[53:]) &&
		!allZero(b[3:35]) && !allZero(b[36:52])
}

// Traceparent builds a sampled traceparent out of 24 random bytes.
func Traceparent(random [24]byte) string {
	random[0] |= 1 // neither id may be all zero
	random[16] |= 1
	b := make([]byte, 0, traceparentLen)
	b = append(b, "00-"...)
	b = hex.AppendEncode(b, random[:16])
	b = append(b, '-')
	b = hex.AppendEncode(b, random[16:])
	return string(append(b, "-01"...))
}

func lowerHex(b []byte) bool {
	for _, c := range b {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != '0' {
			return false
		}
	}
	return true
}
