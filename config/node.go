package config

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// position is a byte offset in a file plus one. The zero value is an unknown
// place.
type position int

func positionOf(offset int) position { return position(offset + 1) }

// before orders unknown places last.
func (p position) before(q position) bool { return p != 0 && (q == 0 || p < q) }

// lines tells positions as people count them.
type lines struct {
	doc    string
	starts []int // offset of the first byte of each line
}

func newLines(doc string) *lines {
	starts := []int{0}
	for i := range len(doc) {
		if doc[i] == '\n' {
			starts = append(starts, i+1)
		}
	}
	return &lines{doc: doc, starts: starts}
}

// at counts lines and columns from 1, columns in characters; an unknown place
// is 0, 0.
func (l *lines) at(p position) (line, column int) {
	if p <= 0 {
		return 0, 0
	}
	offset := min(int(p)-1, len(l.doc))
	line = sort.Search(len(l.starts), func(i int) bool { return l.starts[i] > offset })
	return line, 1 + utf8.RuneCountInString(l.doc[l.starts[line-1]:offset])
}

type kind int

const (
	kindNull kind = iota
	kindString
	kindInteger
	kindFloat
	kindBool
	kindTime
	kindArray
	kindTable
)

// node is a value of a TOML or JSON file with its place.
type node struct {
	kind    kind
	pos     position
	text    string // string, or the literal of a float
	num     int64
	truth   bool
	items   []*node
	members []member
}

type member struct {
	name  string
	pos   position
	value *node
}

// hasTable reports that a table is among the members of n.
func (n *node) hasTable(name string) bool {
	return slices.ContainsFunc(n.members, func(m member) bool { return m.name == name && m.value.kind == kindTable })
}

// String describes n in an error message.
func (n *node) String() string {
	switch n.kind {
	case kindString:
		return quote(n.text)
	case kindInteger:
		return strconv.FormatInt(n.num, 10)
	case kindFloat:
		return n.text
	case kindBool:
		return strconv.FormatBool(n.truth)
	case kindTime:
		return "a date or time"
	case kindArray:
		return "an array"
	case kindTable:
		return "a table"
	}
	return "null"
}

// quote shortens what a message repeats from the operator.
func quote(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return fmt.Sprintf("%q...", string(r[:most]))
	}
	return strconv.Quote(s)
}

// sortMembers puts members in file order; those without a place come last, by
// name, so that messages are the same on every run.
func (n *node) sortMembers() {
	sort.Slice(n.members, func(i, j int) bool {
		a, b := n.members[i], n.members[j]
		if a.pos != b.pos {
			return a.pos.before(b.pos)
		}
		return strings.Compare(a.name, b.name) < 0
	})
}
