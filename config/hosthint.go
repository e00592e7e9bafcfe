package config

import (
	"fmt"
	"path/filepath"
	"strings"
)

// notAList explains how entries are written here to whoever writes them as hosts do: a
// table by name, or one table for the only entry.
func (d *decoder) notAList(list string, n *node) {
	text := fmt.Sprintf("%s must be an array of tables, not %s", label(list), n)
	if n.kind == kindTable {
		text += d.entryHint(list, n)
	}
	d.problem(n.pos, "%s", text)
}

func (d *decoder) entryHint(list string, n *node) string {
	entry, name := n, ""
	if len(n.members) > 0 && n.members[0].value.kind == kindTable && n.member("name") == nil {
		entry, name = n.members[0].value, n.members[0].name
	}
	command, url := entry.member("command"), entry.member("url")
	switch {
	case url != nil:
		list = "mcpServers"
	case command != nil:
		list = "stdioUpstreams"
	}
	var pairs []string
	add := func(key, value string) {
		if d.isJSON() {
			pairs = append(pairs, fmt.Sprintf("%q: %s", key, value))
		} else {
			pairs = append(pairs, key+" = "+value)
		}
	}
	if name == "" {
		name = "NAME"
		if given := entry.member("name"); given != nil && given.kind == kindString {
			name = given.text
		}
	}
	add("name", quote(name))
	switch {
	case url != nil:
		add("url", `"..."`) // it may hold a secret
	case command != nil && command.kind == kindString:
		add("command", quote(command.text))
	}
	if d.isJSON() {
		return fmt.Sprintf(`; write "%s": [{%s, ...}]`, list, strings.Join(pairs, ", "))
	}
	return fmt.Sprintf("; write [[%s]] for each entry, with %s below it", list, strings.Join(pairs, ", "))
}

func (d *decoder) isJSON() bool { return strings.EqualFold(filepath.Ext(d.name), ".json") }

// member is the value of a member of a table, nil without it.
func (n *node) member(name string) *node {
	for _, m := range n.members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// homes tells in which lists of upstreams a key is known.
func (c *Config) homes() map[string][]string {
	homes := map[string][]string{}
	for _, list := range upstreamLists() {
		for _, name := range entrySchema("[["+list+"]]", c.lists()[list]()).names() {
			homes[name] = append(homes[name], "[["+list+"]]")
		}
	}
	return homes
}
