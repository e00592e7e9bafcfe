package aggregate

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"slices"
	"strconv"

	"mcpbroker/actors/wire"
)

// list is what members publish, one kind each.
type list int

const (
	tools list = iota
	prompts
	resources
	templates
	kinds
)

// lists says how each kind is spelled.
var lists = [kinds]struct {
	method     string // that lists it
	key        string // of the array in the result
	item       string // one of it, in errors
	name       string // the member that identifies an item
	capability string // a server declares when it has any
	changed    string // notification
}{
	tools:     {"tools/list", "tools", "tool", "name", "tools", "notifications/tools/list_changed"},
	prompts:   {"prompts/list", "prompts", "prompt", "name", "prompts", "notifications/prompts/list_changed"},
	resources: {"resources/list", "resources", "resource", "uri", "resources", "notifications/resources/list_changed"},
	templates: {"resources/templates/list", "resourceTemplates", "template", "uriTemplate", "resources", "notifications/resources/list_changed"},
}

// serves tells whether _all unites this kind.
func (s *State) serves(k list) bool { return k < resources || s.cfg.Resources }

func (s *State) kindListedBy(method string) (list, bool) {
	for k := range kinds {
		if lists[k].method == method {
			return k, s.serves(k)
		}
	}
	return 0, false
}

// listSet is a set of kinds.
type listSet uint8

func (b listSet) with(k list) listSet    { return b | 1<<k }
func (b listSet) without(k list) listSet { return b &^ (1 << k) }
func (b listSet) has(k list) bool        { return b>>k&1 == 1 }

// collection is what a member published of one kind.
type collection struct {
	entries []entry
	bytes   int
	problem string // why it may not be all
	retry   bool   // the problem is not the provider's word
}

func (c *collection) len() int {
	if c == nil {
		return 0
	}
	return len(c.entries)
}

func (c *collection) incomplete() bool { return c != nil && c.retry }

// fetch is a walk over the pages of one list. It is replaced with every page.
type fetch struct {
	kind    list
	got     collection
	pages   int
	left    int // items without a name
	cursors map[[sha256.Size]byte]bool
}

// Bounds of one walk, and of all lists together.
const (
	maxPages     = 1000
	maxItems     = 20000
	maxListBytes = 16 << 20
	maxHeld      = 256 << 20
)

// listChanged: the member's notification about one kind of list.
type listChanged struct {
	control
	session uint64
	kind    list
	taken   func() // makes room for the next one
}

// listChanged fetches again what the notification is about, once what is being
// fetched has come and not too soon.
func (s *State) listChanged(n *listChanged) {
	m := s.joining[n.session]
	if m == nil || m.listed == 0 {
		return
	}
	for k := range kinds {
		if lists[k].changed == lists[n.kind].changed && m.listed.has(k) {
			s.refresh(m, k)
		}
	}
	s.next(m)
}

// next fetches the next list, those that are declared first. A member whose lists have
// all come once is ready.
func (s *State) next(m *member) {
	s.makeWay(m)
	if m.request != 0 || m.to == nil {
		return
	}
	if !m.joined && m.complete() {
		s.published(m)
	}
	due := m.want & m.declared
	if due == 0 {
		due = m.want
	}
	for k := range kinds {
		if due.has(k) {
			set(s, &m.want, m.want.without(k))
			set(s, &m.fetch, &fetch{kind: k, cursors: map[[sha256.Size]byte]bool{}})
			s.request(m, lists[k].method, []byte(`{}`))
			return
		}
	}
}

// answered takes the answer to a request of our own.
func (s *State) answered(m *member, frame []byte) {
	set(s, &m.request, 0)
	if m.fetch == nil {
		s.initialized(m, frame)
		return
	}
	s.calmed(m)
	name := lists[m.fetch.kind].method
	if result := wire.Member(frame, "result"); len(result) > 0 && result[0] == '{' {
		s.page(m, result)
		return
	}
	failure := wire.Member(frame, "error")
	if string(wire.Member(failure, "code")) == strconv.Itoa(wire.CodeMethodNotFound) {
		s.fetched(m, *m.fetch, "", false)
		return
	}
	s.fetched(m, *m.fetch, name+" failed: "+refusal(frame), false)
}

// unanswered: the broker, not the provider, has the last word on a request of our
// own.
func (s *State) unanswered(m *member, err *wire.Error) {
	set(s, &m.request, 0)
	if err.Gone { // the registry says who comes next
		s.startle(m)
		if m.joined {
			s.dropFetches(m)
		} else {
			s.depart(m, m.farewell())
		}
		return
	}
	if m.fetch == nil {
		s.handshakeFailed(m, "initialize failed: "+shorten(err.Message), true)
		return
	}
	s.fetched(m, *m.fetch, lists[m.fetch.kind].method+" failed: "+shorten(err.Message), true)
}

// page takes one page of a list and asks for the next.
func (s *State) page(m *member, result []byte) {
	if !s.marked(m, readMark(result)) {
		return
	}
	f := *m.fetch
	f.pages++
	problem := f.take(m, result, maxHeld-s.held+m.replaces(f.kind))
	if f.got.len() > 0 {
		s.shown(m, f.kind)
	}
	cursor := wire.Member(result, "nextCursor")
	more := len(cursor) > len(`""`) && cursor[0] == '"'
	hash := sha256.Sum256(cursor)
	switch method := lists[f.kind].method; {
	case problem != "":
		problem = method + " ended early: " + problem
	case more && f.cursors[hash]:
		problem = fmt.Sprintf("%s ended early: the provider repeats a cursor after %d pages", method, f.pages)
	case more && f.pages >= maxPages:
		problem = fmt.Sprintf("%s ended early: more than %d pages", method, maxPages)
	case more:
		put(s, f.cursors, hash, true)
		set(s, &m.fetch, &f)
		s.request(m, method, slices.Concat([]byte(`{"cursor":`), cursor, []byte(`}`)))
		return
	case f.left > 0:
		problem = fmt.Sprintf("%s: %d entries have no %s and are left out", method, f.left, lists[f.kind].name)
	}
	s.fetched(m, f, problem, false)
}

// replaces is how many bytes leave with the list of the member before.
func (m *member) replaces(k list) int {
	if m.before == nil || m.before.lists[k] == nil {
		return 0
	}
	return m.before.lists[k].bytes
}

// take adds the items of a page up to the bounds, and says which was met.
func (f *fetch) take(m *member, result []byte, room int) (problem string) {
	room = min(room, maxListBytes)
	array := wire.Member(result, lists[f.kind].key)
	if len(array) == 0 || array[0] != '[' {
		return "the result has no array of " + lists[f.kind].key
	}
	eachElement(array, func(at wire.Span) {
		if problem != "" {
			return
		}
		e, ok := newEntry(f.kind, m, within(array, at))
		switch {
		case !ok:
			f.left++
		case len(f.got.entries) >= maxItems:
			problem = fmt.Sprintf("more than %d items", maxItems)
		case f.got.bytes+len(e.bytes) > room:
			problem = fmt.Sprintf("larger than %d bytes", room)
		default:
			f.got.entries = append(f.got.entries, e)
			f.got.bytes += len(e.bytes)
		}
	})
	return problem
}

// fetched ends a walk. A refresh that fails keeps what was there before; the want of a
// list that is neither declared nor was there is no problem.
func (s *State) fetched(m *member, f fetch, problem string, retry bool) {
	declared := m.declared.has(f.kind) || m.succeeds(f.kind)
	if !declared {
		problem = ""
	}
	got := &f.got
	before := m.lists[f.kind]
	if problem != "" && f.pages == 0 && before != nil {
		kept := *before
		got = &kept
	}
	got.problem, got.retry = problem, retry
	if problem != "" && (before == nil || before.problem != problem) {
		s.log(slog.LevelWarn, `the list of provider "%s" is not complete: %s`, m.slot, problem)
	}
	set(s, &m.fetch, nil)
	s.hold(m, f.kind, got)
	s.statusChanged()
	switch {
	case retry && !declared:
		s.retryAfter(m, &m.misses)
	case retry:
		s.retryLater(m)
	case !declared:
		set(s, &m.misses, 0)
	case m.joined:
		set(s, &m.failures, 0)
	}
	if m.joined && (s.replaced(m, f.kind, before, got) || m.remarked) {
		set(s, &m.remarked, false)
		s.broadcast()
	}
	s.next(m)
}

// replaced puts a list of a member in the place of the one before, and tells whether
// that is news.
func (s *State) replaced(m *member, k list, before, now *collection) bool {
	if same(before, now) {
		s.keepEntries(m, k, before)
		return false
	}
	set(s, &s.catalogs[k], nil)
	return true
}

// keepEntries goes on with the bytes of an equal list, of which the catalog is made.
func (s *State) keepEntries(m *member, k list, before *collection) {
	if before == nil || m.lists[k] == nil {
		return
	}
	kept := *m.lists[k]
	kept.entries = before.entries
	s.hold(m, k, &kept)
}

// hold replaces a list of a member, nil for none, and keeps count of the whole.
func (s *State) hold(m *member, k list, c *collection) {
	held := s.held
	if before := m.lists[k]; before != nil {
		held -= before.bytes
	}
	if c != nil {
		held += c.bytes
	}
	set(s, &s.held, held)
	set(s, &m.lists[k], c)
}

func same(a, b *collection) bool {
	if a == nil || b == nil {
		return a.len() == b.len()
	}
	return slices.EqualFunc(a.entries, b.entries, func(a, b entry) bool { return bytes.Equal(a.bytes, b.bytes) })
}

// ownRequest builds a request of our own. The id is replaced on the way, and
// there for whoever reads a log.
func ownRequest(slot string, n uint64, method string, params []byte) []byte {
	b := wire.AppendString([]byte(`{"jsonrpc":"2.0","id":`), "agg-"+slot+"-"+strconv.FormatUint(n, 10))
	b = wire.AppendString(append(b, `,"method":`...), method)
	return append(append(append(b, `,"params":`...), params...), '}')
}
