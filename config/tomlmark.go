package config

import (
	"strings"

	"github.com/BurntSushi/toml"
)

// mark holds the places of one TOML value and of what it contains. A nil mark
// knows no place.
type mark struct {
	key, value position
	subs       map[string]*mark
	items      []*mark
}

func (m *mark) place() position {
	if m == nil {
		return 0
	}
	return m.value
}

func (m *mark) keyPlace() position {
	if m == nil {
		return 0
	}
	return m.key
}

func (m *mark) sub(name string) *mark {
	if m == nil {
		return nil
	}
	return m.subs[name]
}

func (m *mark) item(i int) *mark {
	if m == nil || i >= len(m.items) {
		return nil
	}
	return m.items[i]
}

// enter returns the value called name, making it at pos when it is new. In an
// array of tables that is the newest table.
func (m *mark) enter(name string, pos position) *mark {
	s := m.subs[name]
	if s == nil {
		s = &mark{key: pos, value: pos}
		if m.subs == nil {
			m.subs = make(map[string]*mark)
		}
		m.subs[name] = s
	}
	if len(s.items) > 0 {
		return s.items[len(s.items)-1]
	}
	return s
}

// maxMarkDepth bounds recursion; values nested deeper have no place.
const maxMarkDepth = 100

// marker finds the places of keys and values in a document that the TOML
// library has accepted. It therefore checks nothing, and only promises to end
// on any text.
type marker struct {
	doc string
	i   int
}

func markTOML(doc string) *mark {
	k := &marker{doc: doc}
	root := &mark{value: positionOf(0)}
	table := root
	for k.skipBlank(); k.i < len(doc); k.skipBlank() {
		before := k.i
		if k.peek() == '[' {
			table = k.header(root)
		} else {
			k.pair(table, 0)
		}
		if k.i == before {
			k.i++
		}
	}
	return root
}

func (k *marker) peek() byte {
	if k.i < len(k.doc) {
		return k.doc[k.i]
	}
	return 0
}

func (k *marker) here() position { return positionOf(k.i) }

func (k *marker) skip(set string) {
	for k.i < len(k.doc) && strings.IndexByte(set, k.doc[k.i]) >= 0 {
		k.i++
	}
}

// skipBlank passes blanks, newlines and comments.
func (k *marker) skipBlank() {
	for k.skip(" \t\r\n"); k.peek() == '#'; k.skip(" \t\r\n") {
		k.until("\n")
	}
}

// until stops before the first byte of set.
func (k *marker) until(set string) {
	if n := strings.IndexAny(k.doc[k.i:], set); n >= 0 {
		k.i += n
	} else {
		k.i = len(k.doc)
	}
}

// header reads [a.b] or [[a.b]]. The place of the table is its first bracket.
func (k *marker) header(root *mark) *mark {
	pos := k.here()
	isArray := strings.HasPrefix(k.doc[k.i:], "[[")
	k.skip("[")
	m := root
	names := k.names()
	for i, name := range names {
		if i < len(names)-1 || !isArray {
			m = m.enter(name.text, pos)
			continue
		}
		m.enter(name.text, pos)
		array := m.subs[name.text]
		array.items = append(array.items, &mark{key: pos, value: pos})
		m = array.items[len(array.items)-1]
	}
	k.skip(" \t]")
	return m
}

type markedName struct {
	text string
	pos  position
}

// names reads a key, dotted or not.
func (k *marker) names() []markedName {
	var names []markedName
	for {
		k.skip(" \t")
		pos := k.here()
		names = append(names, markedName{k.name(), pos})
		k.skip(" \t")
		if k.peek() != '.' {
			return names
		}
		k.i++
	}
}

func (k *marker) name() string {
	start := k.i
	if q := k.peek(); q != '"' && q != '\'' {
		k.until(" \t\r\n.=]#,}")
		return k.doc[start:k.i]
	}
	k.quoted()
	raw := k.doc[start:k.i]
	if !strings.Contains(raw, `\`) || raw[0] == '\'' {
		return strings.Trim(raw, raw[:1])
	}
	var unescaped struct{ V string }
	if _, err := toml.Decode("v="+raw, &unescaped); err != nil {
		return raw
	}
	return unescaped.V
}

// pair reads key = value into table.
func (k *marker) pair(table *mark, depth int) {
	m := table
	for _, name := range k.names() {
		m = m.enter(name.text, name.pos)
	}
	if k.peek() == '=' {
		k.i++
	}
	k.skip(" \t")
	k.fill(m, depth)
}

// fill reads the value that starts here into m.
func (k *marker) fill(m *mark, depth int) {
	m.value = k.here()
	switch k.peek() {
	case '"', '\'':
		k.quoted()
	case '[':
		k.list(']', depth, func() {
			item := &mark{}
			m.items = append(m.items, item)
			k.fill(item, depth+1)
		})
	case '{':
		k.list('}', depth, func() { k.pair(m, depth+1) })
	default:
		k.until(",]}#\r\n")
	}
}

// list reads an array or an inline table up to its end.
func (k *marker) list(end byte, depth int, element func()) {
	if depth >= maxMarkDepth {
		k.i = len(k.doc)
		return
	}
	k.i++
	for k.skipBlank(); k.i < len(k.doc) && k.peek() != end; k.skipBlank() {
		before := k.i
		if k.peek() != ',' {
			element()
		}
		k.skipBlank()
		if k.peek() == ',' || k.i == before {
			k.i++
		}
	}
	if k.i < len(k.doc) {
		k.i++
	}
}

// quoted passes a string of any of the four kinds.
func (k *marker) quoted() {
	q := k.doc[k.i : k.i+1]
	end := q
	if triple := strings.Repeat(q, 3); strings.HasPrefix(k.doc[k.i:], triple) {
		end = triple
	}
	k.i += len(end)
	for k.i < len(k.doc) && !strings.HasPrefix(k.doc[k.i:], end) {
		if q == `"` && k.doc[k.i] == '\\' {
			k.i++
		}
		k.i++
	}
	k.i = min(k.i+len(end), len(k.doc))
	if len(end) == 1 {
		return
	}
	// Up to two quotes more belong to a multi-line string.
	for range 2 {
		if k.peek() == q[0] {
			k.i++
		}
	}
}
