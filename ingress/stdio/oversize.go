package stdio

import (
	"regexp"

	"mcpbroker/actors/wire"
)

// answers returns the raw id of the broker's request that the line answers, nil
// when that cannot be told. Servers write the id first or last.
func (l *longLine) answers() []byte {
	if id := idInHead(l.head); id != nil {
		return id
	}
	if m := idAtEnd.FindSubmatch(l.tail); m != nil {
		if _, ok := wire.ParseBrokerID(m[1]); ok {
			return m[1]
		}
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
				if _, ok := wire.ParseBrokerID(text); ok {
					return text
				}
				return nil
			}
			i += len(text) - 1
		}
	}
	return nil
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
