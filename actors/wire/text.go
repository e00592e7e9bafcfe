package wire

import (
	"strings"
	"unicode/utf8"
)

// AppendString appends text as a JSON string. Only what JSON demands is
// escaped; invalid UTF-8 becomes U+FFFD.
func AppendString(b []byte, text string) []byte {
	const hexDigits = "0123456789abcdef"
	b = append(b, '"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, '\\', 'n')
		case r == '\r':
			b = append(b, '\\', 'r')
		case r == '\t':
			b = append(b, '\\', 't')
		case r < 0x20:
			b = append(b, '\\', 'u', '0', '0', hexDigits[r>>4], hexDigits[r&15])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}

// MaxReason is the longest close reason RFC 6455 allows, in bytes.
const MaxReason = 123

// CloseReason cuts a close reason to MaxReason bytes on a character boundary,
// ending a cut one in "..." (spec 01 2.2). Reasons put the instruction first and
// the slot name last, so it is the name that is cut. Invalid UTF-8 becomes U+FFFD:
// a close frame must not hold any.
func CloseReason(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= MaxReason {
		return text
	}
	end := MaxReason - len("...")
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "..."
}

// Excerpt quotes at most 200 characters of a frame for a log line.
func Excerpt(b []byte) string {
	const most = 200
	end, n := 0, 0
	for end < len(b) && n < most {
		_, size := utf8.DecodeRune(b[end:])
		end += size
		n++
	}
	return string(AppendString(nil, string(b[:end])))
}

// Preview is the longest prefix of a frame worth keeping for Excerpt.
func Preview(b []byte) []byte { return b[:min(len(b), 200*utf8.UTFMax)] }
