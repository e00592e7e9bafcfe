package config

import (
	"encoding/json"
	"errors"
	"strconv"
)

// plain is a node as encoding/json would decode it.
func plain(n *node) any {
	switch n.kind {
	case kindString:
		return n.text
	case kindInteger:
		return n.num
	case kindFloat:
		f, _ := strconv.ParseFloat(n.text, 64)
		return f
	case kindBool:
		return n.truth
	case kindArray:
		list := make([]any, 0, len(n.items))
		for _, item := range n.items {
			list = append(list, plain(item))
		}
		return list
	case kindTable:
		table := make(map[string]any, len(n.members))
		for _, m := range n.members {
			table[m.name] = plain(m.value)
		}
		return table
	}
	return nil
}

// jsonValue is a table that is handed on as a JSON object.
type jsonValue struct{ p *string }

func (v *jsonValue) typ() string           { return "table" }
func (v *jsonValue) String() string        { return *v.p }
func (v *jsonValue) fromText(string) error { return errFileOnly }
func (v *jsonValue) check() error          { return nil }

func (v *jsonValue) fromNode(n *node, _ string) []fault {
	if n.kind != kindTable {
		return refuse(n, errors.New("must be a table"))
	}
	text, err := json.Marshal(plain(n))
	if err != nil {
		return refuse(n, errors.New("must be a table that JSON can hold"))
	}
	*v.p = string(text)
	return nil
}

// anyMapValue is a table of strings, numbers, booleans and lists of them.
type anyMapValue struct{ p *map[string]any }

func (v *anyMapValue) typ() string           { return "table" }
func (v *anyMapValue) String() string        { return "" }
func (v *anyMapValue) fromText(string) error { return errFileOnly }
func (v *anyMapValue) check() error          { return nil }

func (v *anyMapValue) fromNode(n *node, _ string) []fault {
	if n.kind != kindTable {
		return refuse(n, errors.New("must be a table"))
	}
	for _, m := range n.members {
		if m.value.kind == kindTable || m.value.kind == kindTime {
			return refuse(m.value, errors.New("must hold strings, numbers, booleans and lists of them"))
		}
	}
	*v.p, _ = plain(n).(map[string]any)
	return nil
}
