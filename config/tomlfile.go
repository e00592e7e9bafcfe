package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// parseTOML reads a document. Values come from the TOML library, which keeps
// no positions; places come from a second look at the same text.
func parseTOML(doc string) (*node, *syntaxError) {
	var values map[string]any
	if _, err := toml.Decode(doc, &values); err != nil {
		return nil, tomlError(err)
	}
	return tomlNode(values, markTOML(doc)), nil
}

// syntaxError is a document that is not TOML or not JSON.
type syntaxError struct {
	pos  position
	text string
}

func tomlError(err error) *syntaxError {
	var parse toml.ParseError
	if !errors.As(err, &parse) {
		return &syntaxError{text: err.Error()}
	}
	text := strings.Join(strings.Fields(parse.Message), " ")
	if name, ok := strings.CutSuffix(text, "' has already been defined."); ok && strings.HasPrefix(name, "Key '") {
		text = fmt.Sprintf("duplicate key %q", strings.TrimPrefix(name, "Key '"))
	}
	return &syntaxError{positionOf(parse.Position.Start), text}
}

// tomlNode joins a decoded value with its place.
func tomlNode(v any, m *mark) *node {
	n := &node{pos: m.place()}
	switch v := v.(type) {
	case map[string]any:
		n.kind = kindTable
		for name, value := range v {
			sub := m.sub(name)
			n.members = append(n.members, member{name, sub.keyPlace(), tomlNode(value, sub)})
		}
		n.sortMembers()
	case []map[string]any:
		n.kind = kindArray
		for i, value := range v {
			n.items = append(n.items, tomlNode(value, m.item(i)))
		}
	case []any:
		n.kind = kindArray
		for i, value := range v {
			n.items = append(n.items, tomlNode(value, m.item(i)))
		}
	case string:
		n.kind, n.text = kindString, v
	case int64:
		n.kind, n.num = kindInteger, v
	case float64:
		n.kind, n.text = kindFloat, strconv.FormatFloat(v, 'g', -1, 64)
	case bool:
		n.kind, n.truth = kindBool, v
	case time.Time:
		n.kind = kindTime
	}
	return n
}
