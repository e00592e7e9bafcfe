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
	index   map[string]target // by name
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
	c := &catalog{version: s.versions[k] + 1, index: map[string]target{}}
	limit := 0
	if k == tools {
		limit = maxName
	}
	for _, m := range s.joined {
		if m.lists[k] == nil {
			continue
		}
		entries := m.lists[k].entries
		for i := range entries {
			c.add(m, &entries[i], k < resources, limit)
		}
	}
	c.paginate(pageBytes - len(s.note(k)) - 256)
	set(s, &s.versions[k], c.version)
	set(s, &s.catalogs[k], c)
	return c
}

func (c *catalog) add(m *member, e *entry, named bool, limit int) {
	if !named {
		c.items = append(c.items, e.bytes)
		return
	}
	name := e.name
	for n := 2; ; n++ {
		if _, taken := c.index[name]; !taken {
			break
		}
		name = numbered(e.name, n, limit)
	}
	c.index[name] = target{m.slot, e.original}
	if name == e.name {
		c.items = append(c.items, e.bytes)
	} else {
		c.items = append(c.items, e.as(name))
	}
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
