package wire

import "regexp"

// CutResponseID returns the raw broker id of a message that is too large to be
// read whole, of which head and tail are the first and the last bytes; nil where it
// cannot be told. Servers write the id first or last. One of an object inside the
// message, or in a string, is none.
func CutResponseID(head, tail []byte) []byte {
	if id := idInHead(head); id != nil {
		return id
	}
	if m := idAtEnd.FindSubmatch(tail); m != nil {
		return brokerID(m[1])
	}
	return nil
}

// idAtEnd finds the id among the last members of a message. Its closing brace is
// the message's own, and unescaped quotes cannot be inside a string.
var idAtEnd = regexp.MustCompile(`[,{]\s*"id"\s*:\s*("brk-[0-9]+")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?}\s*$`)

// idInHead finds the id among the members of a message of which b is the start.
func idInHead(b []byte) []byte {
	depth, key := 0, []byte(nil)
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',':
			key = nil
		case '"':
			text := leadingString(b[i:])
			switch {
			case text == nil:
				return nil
			case depth == 1 && key == nil:
				key = text
			case depth == 1 && string(key) == `"id"`:
				return brokerID(text)
			}
			i += len(text) - 1
		}
	}
	return nil
}

func brokerID(raw []byte) []byte {
	if _, ok := ParseBrokerID(raw); !ok {
		return nil
	}
	return raw
}

// leadingString returns the JSON string at the start of b, quotes included, nil
// when b ends inside it.
func leadingString(b []byte) []byte {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return b[:i+1]
		}
	}
	return nil
}
