package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// decoder carries a parsed file into a Config and collects what is wrong.
type decoder struct {
	cfg   *Config
	name  string // of the file, as the operator knows it
	dir   string // relative file names start here
	lines *lines
	found []Problem
	// places remembers where settings were given, and bad which of them are
	// wrong by themselves, for problems between settings.
	places map[string]position
	bad    map[string]bool
	// later are the lists of upstreams, read once the rest is known.
	later map[string]*node
}

// label is how messages name a setting. Names of slots are quoted already.
func label(name string) string {
	if strings.Contains(name, `"`) {
		return name
	}
	return `"` + name + `"`
}

func (d *decoder) problem(pos position, format string, args ...any) {
	line, column := d.lines.at(pos)
	d.found = append(d.found, Problem{d.name, line, column, fmt.Sprintf(format, args...)})
}

// unknownKey is an error inside a value that is a table of its own, or an array
// of tables.
type unknownKey struct {
	name, hint string
	array      bool
}

func (u unknownKey) Error() string { return fmt.Sprintf("unknown key %q%s", u.name, u.hint) }

// schema is what one table may hold.
type schema struct {
	title       string // how messages name the table, empty at the top
	prefix      string // of full setting names
	keys        map[string]key
	tables      map[string]*schema
	unavailable []string
	misplaced   []string // top-level keys, to recognise one under a header
	// homes tells where else a key is known, nil where nothing is akin.
	homes map[string][]string
}

func newSchema(title, prefix string, unavailable []string) *schema {
	return &schema{title: title, prefix: prefix, unavailable: unavailable,
		keys: make(map[string]key), tables: make(map[string]*schema)}
}

// fileSchema arranges the dotted names of the key table by table.
func fileSchema(c *Config) *schema {
	top := newSchema("", "", append(unavailableKeys(), securityKeys()...))
	for _, k := range c.keys() {
		if k.envOnly {
			continue
		}
		table, name, dotted := strings.Cut(k.name, ".")
		if !dotted {
			top.keys[k.name] = k
			continue
		}
		if top.tables[table] == nil {
			top.tables[table] = newSchema("["+table+"]", table+".", nil)
		}
		top.tables[table].keys[name] = k
	}
	for _, t := range top.tables {
		t.misplaced = sortedNames(top.keys)
	}
	return top
}

func slotSchema(name string, s *Slot, misplaced []string) *schema {
	t := newSchema(fmt.Sprintf("[slots.%q]", name), fmt.Sprintf("slots.%q.", name), nil)
	t.add(s.keys())
	t.misplaced = misplaced
	return t
}

// add arranges keys, dotted names in a table of their own.
func (s *schema) add(keys []key) {
	for _, k := range keys {
		table, name, dotted := strings.Cut(k.name, ".")
		if !dotted {
			s.keys[k.name] = k
			continue
		}
		if s.tables[table] == nil {
			s.tables[table] = newSchema(s.title+" "+table, s.prefix+table+".", nil)
		}
		s.tables[table].keys[name] = k
	}
}

func (s *schema) names() []string {
	names := append(sortedNames(s.keys), sortedNames(s.tables)...)
	if s.title == "" {
		names = append(names, "slots", "stdioUpstreams", "mcpServers", "mcpbBundles", templatesKey)
	}
	return append(names, s.unavailable...)
}

// conflicts reports problems between settings, at the place of one that was
// given. The map names the variable or flag that gave a setting its value.
func (d *decoder) conflicts(found []conflict, set map[string]string) {
	for _, c := range found {
		if slices.ContainsFunc(c.names, func(name string) bool { return d.bad[name] }) {
			continue
		}
		p := Problem{File: d.name, Message: fmt.Sprintf("%q %v", c.names[0], c.err)}
		for _, name := range c.names {
			if by, ok := set[name]; ok {
				p.File, p.Message = "", fmt.Sprintf("%s (set by %s)", p.Message, by)
				break
			}
			if pos, ok := d.places[name]; ok {
				p.Line, p.Column = d.lines.at(pos)
				break
			}
		}
		d.found = append(d.found, p)
	}
}

// sort puts problems in the order of the file, those without a place last. What is
// wrong in a template is found with each entry that starts from it, and told once.
func (d *decoder) sort() {
	told := map[Problem]bool{}
	d.found = slices.DeleteFunc(d.found, func(p Problem) bool {
		before := told[p]
		told[p] = true
		return before
	})
	slices.SortStableFunc(d.found, func(a, b Problem) int {
		if a.Line == 0 || b.Line == 0 {
			return cmp.Compare(b.Line, a.Line)
		}
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

func (d *decoder) table(n *node, s *schema) {
	for _, m := range n.members {
		if m.value.kind == kindNull {
			// null means absent (spec 03 5.1), also of a key not available.
			if slices.Contains(s.names(), m.name) {
				continue
			}
		}
		d.member(m, s)
	}
}

func (d *decoder) member(m member, s *schema) {
	full := s.prefix + m.name
	k, isKey := s.keys[m.name]
	sub, isTable := s.tables[m.name]
	switch {
	case isKey:
		d.value(m, full, k)
	case isTable && m.value.kind == kindTable:
		d.table(m.value, sub)
	case isTable:
		d.problem(m.value.pos, "%s must be a table, not %s", label(full), m.value)
	case s.title == "" && m.name == "slots":
		d.slots(m.value)
	case s.title == "" && (m.name == templatesKey || d.cfg.lists()[m.name] != nil):
		d.later[m.name] = m.value
	case s.title == "" && slices.Contains(securityKeys(), m.name):
		d.problem(m.pos, "%s belongs in the security file (securityFile), which is not available yet", label(full))
	case slices.Contains(s.unavailable, m.name):
		d.problem(m.pos, "%s is not available yet", label(full))
	default:
		d.unknown(m, s)
	}
}

func (d *decoder) value(m member, full string, k key) {
	d.places[full] = m.value.pos
	faults := k.value.fromNode(m.value, d.dir)
	for _, f := range faults {
		d.bad[full] = true
		var u unknownKey
		if errors.As(f.err, &u) {
			title := "[" + full + "]"
			if u.array {
				title = "[" + title + "]"
			}
			d.problem(f.pos, "unknown key %q in %s%s", u.name, title, u.hint)
			continue
		}
		d.problem(f.pos, "%s %v", label(full), f.err)
	}
	if k.expands && len(faults) == 0 {
		d.references(full, m.value)
	}
}

func (d *decoder) unknown(m member, s *schema) {
	where := ""
	if s.title != "" {
		where = " in " + s.title
	}
	tip := hint(m.name, s.names())
	switch homes := s.homes[m.name]; {
	case len(homes) > 0:
		tip = fmt.Sprintf(" (it is a key of %s)", strings.Join(homes, " and "))
	case slices.Contains(s.misplaced, m.name):
		tip = " (it belongs at the top level, before any table)"
	}
	d.problem(m.pos, "unknown key %q%s%s", m.name, where, tip)
}

func (d *decoder) slots(n *node) {
	if n.kind != kindTable {
		d.problem(n.pos, `"slots" must be a table of slots, not %s`, n)
		return
	}
	topLevel := sortedNames(fileSchema(d.cfg).keys)
	for _, m := range n.members {
		full := fmt.Sprintf("slots.%q", m.name)
		if m.value.kind == kindNull {
			continue
		}
		if err := checkSlotName(m.name); err != nil {
			d.problem(m.pos, "%s %v", full, err)
			continue
		}
		if m.value.kind != kindTable {
			d.problem(m.value.pos, "%s must be a table, not %s", full, m.value)
			continue
		}
		var slot Slot
		d.table(m.value, slotSchema(m.name, &slot, topLevel))
		if slot.HealthCheck == (HealthCheck{}) && m.value.hasTable("healthCheck") {
			slot.HealthCheck = slot.HealthCheck.withDefaults() // an empty one asks for a check as well
		}
		if d.cfg.Slots == nil {
			d.cfg.Slots = make(map[string]Slot)
		}
		d.cfg.Slots[m.name] = slot
	}
}
