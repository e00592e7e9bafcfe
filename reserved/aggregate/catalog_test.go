package aggregate

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// house is a server with one client, filled by hand.
type house struct {
	t testing.TB
	machine
	theirs uint64
}

func newHouse(t testing.TB, cfg Config) *house {
	h := &house{t: t}
	h.configure(cfg)
	h.step(started{})
	h.step(&msg.JoinSlot{Slot: "_all", Session: 1, Client: h.ref("c1")})
	return h
}

// begin observes a slot and answers up to its list of tools.
func (h *house) begin(slot string, gen uint64) *member {
	info := msg.SlotInfo{Name: slot, Connected: true, Aggregate: true, Gen: gen, ConnectedSince: epoch.Add(time.Duration(gen))}
	h.state.Step(h.now, &msg.SlotObserved{Info: info})
	m := h.state.members[slot]
	h.send(m, &msg.SlotJoined{Ref: h.ref("slot " + slot), Session: m.session})
	h.result(m, `{"capabilities":{"tools":{}}}`)
	return m
}

func (h *house) send(m *member, message any) {
	h.state.Step(h.now, &fromMember{session: m.session, message: message})
}

func (h *house) result(m *member, result string) {
	h.send(m, &msg.CallReply{Call: m.request, Frame: []byte(`{"jsonrpc":"2.0","id":"x","result":` + result + `}`)})
}

// named is a list of n tools of size bytes or a little more.
func named(prefix string, n, size int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"name":"%s%d","description":"%s"}`, prefix, i, strings.Repeat("x", size))
	}
	return `{"tools":[` + b.String() + `]}`
}

// list asks for one page of tools.
func (h *house) list(cursor string) (result []byte, err *wire.Error) {
	h.t.Helper()
	frame, err := h.ask(cursor)
	return wire.Member(frame, "result"), err
}

func (h *house) ask(cursor string) (frame []byte, err *wire.Error) {
	params := ""
	if cursor != "" {
		params = `,"params":{"cursor":` + cursor + `}`
	}
	h.theirs++
	call := &msg.ClientCall{Session: 1, Client: h.ref("c1"), Call: h.theirs, Frame: mustScan(`{"jsonrpc":"2.0","id":1,"method":"tools/list"` + params + `}`)}
	for _, e := range h.state.Step(h.now, call) {
		switch m := e.Message.(type) {
		case *msg.CallReply:
			return m.Frame, nil
		case *msg.CallFailed:
			return nil, m.Err
		}
	}
	h.t.Fatal("tools/list was not answered")
	return nil, nil
}

func namesIn(result []byte) []string {
	var names []string
	wire.Elements(wire.Member(result, "tools"), func(raw []byte) {
		name, _ := wire.Unquote(wire.Member(raw, "name"))
		names = append(names, name)
	})
	return names
}

// spec 07 row 53: a walk over pages has every item once; a catalog that changed
// in between ends it.
func TestPages(t *testing.T) {
	h := newHouse(t, Config{})
	for _, slot := range []string{"a", "b", "c"} {
		h.result(h.begin(slot, 1), named("t", 250, 10<<10))
	}
	seen := map[string]int{}
	var cursors []string
	for cursor, first := "", true; first || cursor != ""; first = false {
		result, err := h.list(cursor)
		if err != nil {
			t.Fatalf("page %s: %v", cursor, err)
		}
		if len(result) > pageBytes {
			t.Errorf("page %s has %d bytes, more than %d", cursor, len(result), pageBytes)
		}
		for _, name := range namesIn(result) {
			seen[name]++
		}
		cursor = string(wire.Member(result, "nextCursor"))
		cursors = append(cursors, cursor)
	}
	if len(seen) != 750 || len(cursors) != 2 {
		t.Errorf("%d tools on %d pages, want 750 on 2", len(seen), len(cursors))
	}
	for name, n := range seen {
		if n != 1 {
			t.Errorf("%s came %d times", name, n)
		}
	}
	h.result(h.begin("d", 1), named("t", 1, 1))
	for _, c := range []struct{ cursor, want string }{
		{cursors[0], "The catalog has changed since this cursor was given; list again without a cursor"},
		{`"x"`, "Unknown cursor; list again without one"},
		{`""`, "Unknown cursor; list again without one"},
		{`7`, "Unknown cursor; list again without one"},
		{`{}`, "Unknown cursor; list again without one"},
		{`"1.0"`, "Unknown cursor; list again without one"},
		{`"2.-1"`, "Unknown cursor; list again without one"},
		{`"2.99"`, "Unknown cursor; list again without one"},
	} {
		if _, err := h.list(c.cursor); err == nil || err.Code != wire.CodeInvalidParams || err.Message != c.want {
			t.Errorf("cursor %s: %v, want %s", c.cursor, err, c.want)
		}
	}
	if _, err := h.list("null"); err != nil {
		t.Errorf("a null cursor: %v", err)
	}
}

// Up to the size of a message everything is one page.
func TestOnePage(t *testing.T) {
	h := newHouse(t, Config{})
	h.result(h.begin("a", 1), named("t", 1000, 4000))
	result, err := h.list("")
	if err != nil || len(namesIn(result)) != 1000 || wire.Member(result, "nextCursor") != nil {
		t.Errorf("%d tools, next %s, %v", len(namesIn(result)), wire.Member(result, "nextCursor"), err)
	}
}

// spec 07 row 53: what a hostile provider can publish is bounded.
func TestHostileLists(t *testing.T) {
	h := newHouse(t, Config{})
	for _, c := range []struct {
		name  string
		pages func(n int) string
		tools int
		want  string
	}{
		{"pages", func(n int) string {
			return fmt.Sprintf(`{"tools":[{"name":"t%d"}],"nextCursor":"%d"}`, n, n)
		}, 1000, "tools/list ended early: more than 1000 pages"},
		{"items", func(n int) string {
			return strings.TrimSuffix(named(fmt.Sprintf("t%d-", n), 7000, 1), "}") + fmt.Sprintf(`,"nextCursor":"%d"}`, n)
		}, 20000, "tools/list ended early: more than 20000 items"},
		{"bytes", func(n int) string {
			return strings.TrimSuffix(named(fmt.Sprintf("t%d-", n), 3, 1<<20), "}") + fmt.Sprintf(`,"nextCursor":"%d"}`, n)
		}, 15, "tools/list ended early: larger than 16777216 bytes"},
	} {
		m := h.begin(c.name, 1)
		for n := 0; m.fetch != nil; n++ {
			h.result(m, c.pages(n))
		}
		if got := m.lists[tools]; !m.joined || len(got.entries) != c.tools || got.problem != c.want {
			t.Errorf("%s: joined=%v with %d tools, %q; want %d, %q", c.name, m.joined, len(got.entries), got.problem, c.tools, c.want)
		}
	}
	for _, slot := range []string{"pages", "items", "bytes"} {
		h.step(&msg.SlotForgotten{Name: slot})
	}
	if h.state.held != 0 || len(h.state.gone) != 0 || len(h.state.joining) != 0 {
		t.Errorf("%d bytes, %d names and %d sessions are left", h.state.held, len(h.state.gone), len(h.state.joining))
	}
}

// spec 03 3.4, spec 07 row 52: names are unique, within the limit, valid, and
// lead back to what the member published.
func TestCatalogProperties(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		h := newHouse(t, Config{})
		short := rapid.StringOfN(rapid.SampledFrom([]rune("a-é🎉")), 1, 3, -1)
		long := rapid.StringOfN(rapid.SampledFrom([]rune("a-é🎉")), 50, 70, -1)
		published := map[string]bool{}
		for _, slot := range rapid.SliceOfNDistinct(short, 1, 4, rapid.ID).Draw(r, "slots") {
			var items []string
			for _, name := range rapid.SliceOfN(rapid.OneOf(short, long), 1, 20).Draw(r, "tools") {
				raw := string(wire.AppendString(nil, name))
				items = append(items, `{"name":`+raw+`}`)
				published[slot+" "+raw] = true
			}
			h.result(h.begin(slot, 1), `{"tools":[`+strings.Join(items, ",")+`]}`)
		}
		result, err := h.list("")
		if err != nil {
			r.Fatal(err)
		}
		index := h.state.catalog(tools).index
		names := namesIn(result)
		if len(index) != len(names) {
			r.Fatalf("%d names lead somewhere, of %d", len(index), len(names))
		}
		for _, name := range names {
			to, ok := index[name]
			if !ok || !published[to.slot+" "+string(to.original)] {
				r.Fatalf("%q leads to %+v", name, to)
			}
			if units(name) > maxName || !utf8.ValidString(name) {
				r.Fatalf("%q is no name", name)
			}
		}
	})
}

// spec 07 row 55: instructions are joined under headings, within bounds.
func TestInstructions(t *testing.T) {
	h := newHouse(t, Config{})
	add := func(slot, text string) {
		info := msg.SlotInfo{Name: slot, Connected: true, Aggregate: true, Gen: 1, ConnectedSince: epoch}
		h.step(&msg.SlotObserved{Info: info})
		m := h.state.members[slot]
		h.send(m, &msg.SlotJoined{Ref: h.ref(slot), Session: m.session})
		h.result(m, `{"capabilities":{},"instructions":`+string(wire.AppendString(nil, text))+`}`)
	}
	add("a", "First.\n")
	add("b", " \n")
	add("c\n# x", "Third.")
	if got, want := h.state.instructions(), "## a\n\nFirst.\n\n## c # x\n\nThird."; got != want {
		t.Errorf("instructions are %q, want %q", got, want)
	}
	add("d", strings.Repeat("é", 2000))
	if got, want := h.state.members["d"].instructions, strings.Repeat("é", 1022)+"..."; got != want {
		t.Errorf("the long text was cut to %d bytes ending %q", len(got), got[len(got)-10:])
	}
	for i := range 40 {
		add(fmt.Sprint("m", i), strings.Repeat("x", 2<<10))
	}
	if n := len(h.state.instructions()); n > maxAllInstructions || n < maxAllInstructions-3<<10 {
		t.Errorf("all instructions have %d bytes", n)
	}
}

// fill makes 200 members of 50 tools of about 1 KiB.
func fill(h *house) {
	for i := range 200 {
		h.result(h.begin(fmt.Sprintf("member-%d", i), 1), named("tool", 50, 900))
	}
}

// The first list over 200 members of 50 tools takes less than 1 s, later ones
// less than 20 ms.
func BenchmarkList(b *testing.B) {
	h := newHouse(b, Config{})
	fill(h)
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			h.state.catalogs[tools] = nil
			if _, err := h.ask(""); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("later", func(b *testing.B) {
		for b.Loop() {
			if _, err := h.ask(""); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// A member that joins, or whose list changes, costs its own list.
func BenchmarkJoin(b *testing.B) {
	h := newHouse(b, Config{})
	fill(h)
	gen := uint64(1)
	tools := named("tool", 50, 900)
	for b.Loop() {
		gen++
		h.result(h.begin("member-7", gen), tools)
	}
}

func BenchmarkCall(b *testing.B) {
	h := newHouse(b, Config{})
	fill(h)
	frame := mustScan(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"member-100-tool25","arguments":{"x":1}}}`)
	reply := []byte(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	session := h.state.members["member-100"].session
	for b.Loop() {
		h.theirs++
		h.state.Step(h.now, &msg.ClientCall{Session: 1, Client: h.ref("c1"), Call: h.theirs, Frame: frame, Trace: trace})
		h.state.Step(h.now, &fromMember{session: session, message: &msg.CallReply{Call: h.state.lastCall, Frame: reply}})
	}
}

// The bounds on time, with room for a slow machine under the race detector.
func TestLargeCatalogIsFast(t *testing.T) {
	h := newHouse(t, Config{})
	fill(h)
	fastest := func(before func()) (list []byte, took time.Duration) {
		took = time.Hour
		for range 5 { // others may use the machine, too
			before()
			start := time.Now()
			var err *wire.Error
			if list, err = h.ask(""); err != nil {
				t.Fatal(err)
			}
			took = min(took, time.Since(start))
		}
		return list, took
	}
	first, took := fastest(func() { h.state.catalogs[tools] = nil })
	if took > time.Second {
		t.Errorf("the first list took %s", took)
	}
	later, took := fastest(func() {})
	if took > 200*time.Millisecond {
		t.Errorf("a later list took %s", took)
	}
	if string(first) != string(later) {
		t.Error("two lists of one catalog differ")
	}
}

// spec 03 3.4, spec 07 row 53: numbering takes no longer for many items of one name.
func TestManyOfOneNameAreFast(t *testing.T) {
	h := newHouse(t, Config{})
	tools := `{"tools":[` + strings.Repeat(`{"name":"x"},`, maxItems-1) + `{"name":"x"}]}`
	for gen := range uint64(2) { // the second time the names are those remembered
		h.result(h.begin("a", gen+1), tools)
		start := time.Now()
		result, err := h.list("")
		if names := namesIn(result); err != nil || len(names) != maxItems || names[1] != "a-x-2" || names[maxItems-1] != fmt.Sprint("a-x-", maxItems) {
			t.Fatalf("%d names, the last is %s; %v", len(names), names[len(names)-1], err)
		}
		h.step(&msg.SlotObserved{Info: msg.SlotInfo{Name: "a"}})
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("listing them and leaving took %s", took)
		}
	}
}
