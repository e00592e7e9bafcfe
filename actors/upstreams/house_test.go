package upstreams_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/registry"
	"mcpbroker/actors/rt"
	"mcpbroker/actors/slot"
	"mcpbroker/actors/upstreams"
	"mcpbroker/actors/wire"
	"mcpbroker/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

func equal(t testing.TB, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// house is a set of upstreams with a registry and real slots. It lives in a bubble
// of synctest: time passes when everybody waits.
type house struct {
	t        *testing.T
	sys      *rt.System
	registry *rt.Ref
	set      *upstreams.Set
	log      *bytes.Buffer
	logMu    sync.Mutex

	logPanics string // at the next line that holds it, once

	sessions  atomic.Uint64
	noSession atomic.Int64 // so often no session can be had
	fuse      atomic.Pointer[fuse]

	mu      sync.Mutex
	servers map[string]*server
}

// fuse makes an actor fail at the next messages that match.
type fuse struct {
	who  *rt.PID // nil is any
	at   func(message any) bool
	left atomic.Int64
}

// Write implements io.Writer for the log.
func (h *house) Write(b []byte) (int, error) {
	h.logMu.Lock()
	defer h.logMu.Unlock()
	if h.logPanics != "" && bytes.Contains(b, []byte(h.logPanics)) {
		h.logPanics = ""
		panic("log struck")
	}
	return h.log.Write(b)
}

func (h *house) logged() string {
	h.logMu.Lock()
	defer h.logMu.Unlock()
	return h.log.String()
}

// inHouse runs a test in a house that has to be empty afterwards.
func inHouse(t *testing.T, test func(t *testing.T, h *house)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &house{t: t, log: &bytes.Buffer{}, servers: map[string]*server{}}
		h.sys = rt.NewSystem(slog.New(slog.NewTextHandler(h, nil)), func(who *rt.PID, message any) {
			if f := h.fuse.Load(); f != nil && (f.who == nil || f.who.Equal(who)) && f.at(message) && f.left.Add(-1) >= 0 {
				panic("struck")
			}
		})
		var ids atomic.Uint64
		slots := func(string) slot.Config {
			return slot.Config{RequestTimeout: time.Minute, NextID: func() uint64 { return ids.Add(1) }}
		}
		h.registry = registry.Start(h.sys, registry.Config{}, slots)
		h.set = upstreams.Start(h.sys, h.registry, `{"name":"broker"}`, func() uint64 {
			if h.noSession.Add(-1) >= 0 {
				panic("session struck")
			}
			return h.sessions.Add(1)
		}, slots)
		test(t, h)
		h.fuse.Store(nil)
		if err := h.set.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		equal(t, "drivers left", h.living(), []string(nil))
		if err := h.sys.StopAndWait(t.Context(), h.registry.PID()); err != nil {
			t.Error(err)
		}
		h.sys.Close()
	})
}

// strike makes an actor fail at the next n messages that match.
func (h *house) strike(n int64, at func(message any) bool) {
	f := &fuse{at: at}
	f.left.Store(n)
	h.fuse.Store(f)
}

func is[T any](message any) bool { _, ok := message.(T); return ok }

func (h *house) apply(configs ...upstreams.Config) upstreams.Changes {
	h.t.Helper()
	changes, err := h.set.Apply(h.t.Context(), configs)
	if err != nil {
		h.t.Fatal(err)
	}
	synctest.Wait()
	return changes
}

func (h *house) verdict(slot string) msg.Verdict {
	h.t.Helper()
	i, err := h.set.Instance(h.t.Context(), slot)
	if err != nil {
		h.t.Fatal(err)
	}
	return i.Verdict
}

// living lists the drivers that have not ended.
func (h *house) living() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []string
	for _, name := range slices.Sorted(maps.Keys(h.servers)) {
		all = append(all, h.servers[name].living()...)
	}
	return all
}

// server is what is behind an upstream: it counts its starts and answers as it is
// told.
type server struct {
	h    *house
	name string

	mu      sync.Mutex
	starts  int
	drivers map[*driver]struct{}

	refuse  error         // starts fail with it
	linger  time.Duration // how long an end takes
	silent  bool          // it does not say when it has opened
	mute    bool          // calls are not answered
	failing bool          // tools/list is an error
	keeps   bool          // calls of clients are answered once they are released

	overlaps bool // a start beside a living driver is no mistake

	startPanics, attachPanics bool // the next time, once
	stopPanics                bool // and the driver has ended without a word
}

// server returns the server of a slot, made on first use.
func (h *house) server(name string) *server {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.servers[name] == nil {
		h.servers[name] = &server{h: h, name: name, drivers: map[*driver]struct{}{}}
	}
	return h.servers[name]
}

// config is an upstream whose fingerprint is the given one.
func (h *house) config(name, fingerprint string) upstreams.Config {
	s := h.server(name)
	return upstreams.Config{Slot: name, Kind: "stdio", Target: "server " + fingerprint, Fingerprint: fingerprint, Start: s.start, Grace: time.Minute}
}

// with changes the server under its lock.
func (s *server) with(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *server) started() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.starts
}

func (s *server) living() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for d := range s.drivers {
		all = append(all, fmt.Sprintf("%s/%d", s.name, d.gen))
	}
	return all
}

func (s *server) start(owner msg.Ref, gen uint64) func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starts++
	if s.startPanics {
		s.startPanics = false
		panic("start struck")
	}
	if s.refuse != nil {
		owner.Send(&msg.UpstreamEnded{Gen: gen, Err: s.refuse})
		return func() {}
	}
	if len(s.drivers) > 0 && !s.overlaps {
		s.h.t.Errorf("%s: a second driver beside %d", s.name, len(s.drivers))
	}
	d := &driver{server: s, owner: owner, gen: gen, credits: rt.NewCredits(64)}
	s.drivers[d] = struct{}{}
	if !s.silent {
		owner.Send(&msg.UpstreamOpened{Gen: gen, Driver: d, PID: s.starts})
	}
	return func() { d.Stop(0) }
}

// die ends the living driver, as a process that exits.
func (s *server) die(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for d := range s.drivers {
		d.end(errors.New(why))
	}
}

// release answers the calls that were kept, and keeps no more.
func (s *server) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keeps = false
	for d := range s.drivers {
		for _, answer := range d.kept {
			d.say(answer)
		}
		d.kept = nil
	}
}

// driver is one connection. Its fields are guarded by the server's lock.
type driver struct {
	server   *server
	owner    msg.Ref
	gen      uint64
	slot     msg.Ref
	slotGen  uint64
	waiting  [][]byte // answers from before Attach
	kept     [][]byte // answers to be released
	credits  rt.Credits
	stopping bool
}

// end is told once. mu is held.
func (d *driver) end(err error) {
	if _, alive := d.server.drivers[d]; alive {
		delete(d.server.drivers, d)
		d.owner.Send(&msg.UpstreamEnded{Gen: d.gen, Err: err})
	}
}

// Attach implements msg.Driver.
func (d *driver) Attach(slot msg.Ref, gen uint64) {
	d.server.mu.Lock()
	defer d.server.mu.Unlock()
	if d.server.attachPanics {
		d.server.attachPanics = false
		panic("attach struck")
	}
	d.slot, d.slotGen = slot, gen
	for _, answer := range d.waiting {
		d.post(answer)
	}
}

// Stop implements msg.Driver.
func (d *driver) Stop(time.Duration) {
	d.server.mu.Lock()
	defer d.server.mu.Unlock()
	if d.server.stopPanics {
		d.server.stopPanics = false
		delete(d.server.drivers, d)
		panic("stop struck")
	}
	if d.stopping {
		return
	}
	d.stopping = true
	time.AfterFunc(d.server.linger, func() {
		d.server.mu.Lock()
		defer d.server.mu.Unlock()
		d.end(nil)
	})
}

// Send implements msg.Conduit: every request is answered at once.
func (d *driver) Send(frame []byte, _ mcp.Class) bool {
	d.server.mu.Lock()
	defer d.server.mu.Unlock()
	if _, alive := d.server.drivers[d]; !alive {
		return false
	}
	f, err := wire.Scan(frame)
	if err != nil {
		d.server.h.t.Errorf("sent %s: %v", frame, err)
		return true
	}
	if !f.IsRequest() || d.server.mute {
		return true
	}
	answer := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"by":%d,"capabilities":{"tools":{}}}}`, f.Raw(f.ID), d.gen)
	if string(f.Method) == mcp.Initialize {
		answer = bytes.Replace(answer, []byte(`"result":{`), []byte(`"result":{"protocolVersion":"2025-11-25",`), 1)
	}
	if d.server.failing && string(f.Method) == "tools/list" {
		answer = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":1,"message":"no"}}`, f.Raw(f.ID))
	}
	if d.server.keeps && string(f.Method) == "m" {
		d.kept = append(d.kept, answer)
		return true
	}
	d.say(answer)
	return true
}

// say passes an answer on, once the driver is attached.
func (d *driver) say(answer []byte) {
	if d.slot == nil {
		d.waiting = append(d.waiting, answer)
		return
	}
	d.post(answer)
}

func (d *driver) post(answer []byte) {
	f, err := wire.Scan(answer)
	if err != nil {
		d.server.h.t.Errorf("answer %s: %v", answer, err)
		return
	}
	d.credits.Take(nil)
	d.slot.Send(&msg.ProviderFrame{Gen: d.slotGen, Frame: f, Credit: d.credits})
}

// client is a session on a slot.
type client struct {
	h       *house
	session uint64
	slot    msg.Ref
	inbox   chan any
	calls   uint64
}

// Send implements msg.Ref.
func (c *client) Send(message any) { c.inbox <- message }

func (h *house) client(name string) *client {
	h.t.Helper()
	c := &client{h: h, session: h.sessions.Add(1), inbox: make(chan any, 100)}
	h.registry.Send(&msg.JoinSlot{Slot: name, Session: c.session, Client: c})
	joined, ok := (<-c.inbox).(*msg.SlotJoined)
	if !ok {
		h.t.Fatal("the client could not join")
	}
	c.slot = joined.Ref
	return c
}

// call sends a request; answer waits for what comes of it.
func (c *client) call() {
	c.calls++
	f, err := wire.Scan(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"m"}`, c.calls))
	if err != nil {
		c.h.t.Fatal(err)
	}
	c.slot.Send(&msg.ClientCall{Session: c.session, Client: c, Call: c.calls, Frame: f, Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
}

func (c *client) answer() string {
	for {
		switch m := (<-c.inbox).(type) {
		case *msg.CallReply:
			_, result, _ := strings.Cut(string(m.Frame), `"result":`)
			return strings.TrimSuffix(result, "}")
		case *msg.CallFailed:
			return m.Err.Message
		}
	}
}

func timeout(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
