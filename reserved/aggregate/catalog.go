package aggregate

import (
	"fmt"
	"strconv"
	"strings"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// catalog is one kind of list over all members. It is made when it is asked for
// and never changes; a change in a member makes another one.
type catalog struct {
	version uint64
	items   [][]byte
	pages   []page
	naming
	numbers map[string]int // while it is made: what to try next for names that collide
}

// target is where a name leads.
type target struct {
	slot     string
	original []byte // the member's own name, raw
}

// page is a part of a catalog.
type page struct {
	from, to int    // items
	json     []byte // the array, made when it is first asked for
}

// pageBytes keeps one answer within the size of message that clients take.
const pageBytes = 4 << 20

// catalog returns the present catalog of a kind.
func (s *State) catalog(k list) *catalog {
	if c := s.catalogs[k]; c != nil {
		return c
	}
	c := &catalog{version: s.versions[k] + 1}
	for _, m := range s.joined {
		switch {
		case m.lists[k] == nil:
		case k < resources:
			s.name(c, k, m)
		default:
			for i := range m.lists[k].entries {
				c.items = append(c.items, m.lists[k].entries[i].bytes)
			}
		}
	}
	if k < resources {
		set(s, &s.named[k], c.naming)
		c.numbers = nil
	}
	c.paginate(pageBytes - len(s.note(k)) - 256)
	set(s, &s.versions[k], c.version)
	set(s, &s.catalogs[k], c)
	return c
}

// name adds the items of a member under names that nobody else has, nor had before and
// may come back to.
func (s *State) name(c *catalog, k list, m *member) {
	if c.index == nil {
		c.naming, c.numbers = naming{index: map[string]target{}, of: map[string][]alias{}}, map[string]int{}
	}
	kept := s.kept(m, k)
	all := make([]alias, 0, m.lists[k].len())
	for i := range m.lists[k].entries {
		e := &m.lists[k].entries[i]
		name := s.free(c, k, m, e, kept)
		c.index[name] = target{m.slot, e.original}
		all = append(all, alias{name, e.original})
		if name == e.name {
			c.items = append(c.items, e.bytes)
		} else {
			c.items = append(c.items, e.as(name))
		}
	}
	c.of[m.slot] = all
}

// free picks the name of an item: the one it is remembered by, or else the first that is
// not taken (spec 03 3.4).
func (s *State) free(c *catalog, k list, m *member, e *entry, kept map[string][]string) string {
	own := ""
	if len(s.gone) > 0 {
		own, _ = wire.Unquote(e.original)
	}
	for len(kept[own]) > 0 {
		name := kept[own][0]
		kept[own] = kept[own][1:]
		if _, taken := c.index[name]; !taken {
			return name
		}
	}
	limit := 0
	if k == tools {
		limit = maxName
	}
	name := e.name
	for n := max(2, c.numbers[e.name]); ; n++ {
		_, taken := c.index[name]
		if !taken && (len(s.gone) == 0 || s.mayHave(goneKey(k, name), claim{m.slot, own})) {
			if name != e.name {
				c.numbers[e.name] = n
			}
			return name
		}
		name = numbered(e.name, n, limit)
	}
}

// mayHave tells whether a name is not remembered as that of anything else.
func (s *State) mayHave(key string, c claim) bool {
	whose, known := s.gone[key]
	return !known || whose == c
}

// paginate cuts the items into pages of at most size bytes, but for an item that
// is larger by itself.
func (c *catalog) paginate(size int) {
	from, used := 0, 0
	for i, item := range c.items {
		if used > 0 && used+len(item)+1 > size {
			c.pages = append(c.pages, page{from: from, to: i})
			from, used = i, 0
		}
		used += len(item) + 1
	}
	c.pages = append(c.pages, page{from: from, to: len(c.items)})
}

func (c *catalog) page(n int) []byte {
	p := &c.pages[n]
	if p.json != nil {
		return p.json
	}
	size := 2
	for _, item := range c.items[p.from:p.to] {
		size += len(item) + 1
	}
	b := append(make([]byte, 0, size), '[')
	for i, item := range c.items[p.from:p.to] {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, item...)
	}
	p.json = append(b, ']')
	return p.json
}

// list answers a list request: one page, with the members it is made of.
func (s *State) list(m *msg.ClientCall, k list) *wire.Error {
	c := s.catalog(k)
	n, err := c.at(wire.Member(m.Frame.Raw(m.Frame.Params), "cursor"))
	if err != nil {
		return err
	}
	more := ""
	if n+1 < len(c.pages) {
		more = fmt.Sprintf(`,"nextCursor":"%d.%d"`, c.version, n+1)
	}
	s.reply(m, []byte(`{"`+lists[k].key+`":`), c.page(n), []byte(more+`,"_meta":`), s.note(k), []byte(`}`))
	return nil
}

// at reads a cursor: the version of the catalog it was given for, and the page.
func (c *catalog) at(raw []byte) (int, *wire.Error) {
	if len(raw) == 0 || string(raw) == "null" {
		return 0, nil
	}
	text, _ := wire.Unquote(raw)
	version, number, ok := strings.Cut(text, ".")
	of, err := strconv.ParseUint(version, 10, 64)
	n, err2 := strconv.Atoi(number)
	switch {
	case !ok || err != nil || err2 != nil || n < 1:
		return 0, wire.UnknownCursor()
	case of != c.version:
		return 0, wire.CursorExpired()
	case n >= len(c.pages):
		return 0, wire.UnknownCursor()
	}
	return n, nil
}
