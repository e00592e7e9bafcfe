package introspection

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"mcpbroker/actors/wire"
)

// argument checks the arguments of a call against the published schema and
// returns the value of the one the tool takes, "" where it is not given. A
// complaint says which member is wrong and what is expected.
func (s *State) argument(t *tool, raw []byte) (value, complaint string) {
	given := map[string]json.RawMessage{}
	switch shape := typeOf(raw); shape {
	case "undefined", "null":
	case "object":
		if err := json.Unmarshal(raw, &given); err != nil {
			return "", fmt.Sprintf("Invalid arguments: %v.", err)
		}
	default:
		return "", fmt.Sprintf("Invalid arguments: expected an object, got %s. %s", shape, t.expects())
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if t.takes == nil || name != t.takes.name {
			return "", fmt.Sprintf("Unknown argument %s. %s", quote(name), t.expects())
		}
	}
	if t.takes == nil {
		return "", ""
	}
	return s.value(t, given[t.takes.name])
}

func (s *State) value(t *tool, raw []byte) (value, complaint string) {
	a, shape := t.takes, typeOf(raw)
	text, isString := wire.Unquote(raw)
	switch {
	case a.required && text == "":
		return "", fmt.Sprintf("Missing required argument: %s (string).", quote(a.name))
	case isString, shape == "undefined", shape == "null":
		return text, ""
	case a.topics:
		return "", fmt.Sprintf("Invalid argument %s: expected a string, got %s. Valid topics: %s.", quote(a.name), shape, s.topicNames())
	}
	return "", fmt.Sprintf("Invalid argument %s: expected a string, got %s. Give the exact name of one slot, or leave it out to diagnose the whole broker.",
		quote(a.name), shape)
}

// expects says what a tool takes.
func (t *tool) expects() string {
	switch {
	case t.takes == nil:
		return t.name + " takes no arguments."
	case t.takes.required:
		return fmt.Sprintf("%s takes one argument: %s (string, required).", t.name, quote(t.takes.name))
	}
	return fmt.Sprintf("%s takes one argument: %s (string, optional).", t.name, quote(t.takes.name))
}

// typeOf names the JSON type of a valid raw value.
func typeOf(raw []byte) string {
	if len(raw) == 0 {
		return "undefined"
	}
	switch raw[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}
