package introspection

import (
	"context"
	"fmt"
	"io/fs"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
	"mcpbroker/actors/wire"
)

// epoch is when every test begins.
var epoch = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// ref is an actor by name; what it is sent is written to the world's log.
type ref struct {
	name string
	w    *world
}

func (r *ref) Send(message any) { r.w.log = append(r.w.log, r.name+" <- "+text(message)) }

// self queues what the actor sends to itself.
type self struct{ w *world }

func (s *self) Send(message any) { s.w.queue = append(s.w.queue, message) }

// registry answers as the registry and its slots would.
type registry struct {
	w      *world
	slots  []msg.SlotInfo          // as they last reported themselves
	live   map[string]msg.SlotInfo // as they are
	silent map[string]bool         // slots that do not answer
	dead   bool                    // takes no questions any more
}

func (r *registry) Send(message any) {
	switch m := message.(type) {
	case *msg.ListInventory:
		if r.dead {
			close(m.Reply)
			return
		}
		m.Reply <- append([]msg.SlotInfo(nil), r.slots...)
	case *msg.DescribeSlot:
		r.describe(m)
	default:
		r.w.log = append(r.w.log, "registry <- "+text(message))
	}
}

func (r *registry) describe(m *msg.DescribeSlot) {
	live, ok := r.live[m.Slot]
	switch {
	case r.silent[m.Slot]:
	case m.Slot == Slot:
		m.Reply <- r.w.a.state.Info()
	case !ok:
		close(m.Reply)
	default:
		m.Reply <- live
	}
}

// world is the server with everybody's part around it played by hand. Effects are
// performed at once; looks at slots too, unless hold is set.
type world struct {
	t     testing.TB
	a     *Actor
	reg   *registry
	now   time.Time
	log   []string
	queue []any
	hold  bool
	held  []*round
	calls uint64
}

var pages = []Topic{
	{"index", "Start", "Where to begin"}, {"publish-provider", "Publish", "How to publish"}, {"connect-client", "Connect", "How to connect"},
	{"host-config", "Host", "How to configure"}, {"deploy", "Deploy", "How to deploy"}, {"troubleshooting", "Trouble", "What to do"},
}

// inEnglish are the packaged texts, without a locale.
func inEnglish(t testing.TB) *wordings { return inLocale(t, "") }

func inLocale(t testing.TB, locale string) *wordings {
	t.Helper()
	w := newWordings(locale)
	files, err := fs.Sub(packaged, "wording")
	if err != nil {
		t.Fatal(err)
	}
	w.load(files, func(what string) { t.Errorf("packaged wording: %s", what) })
	return w
}

func newWorld(t testing.TB, change func(*settings)) *world {
	cfg := settings{
		identity: Identity{
			Name: "b", Version: "1.2.3", StartedAt: epoch.Add(-90500 * time.Millisecond), Host: "127.0.0.1", Port: 3000,
			Paths: Paths{"/provider", "/providers", "/client", "/mcp", "/sse", "/messages"},
		},
		aggregate: true,
		guide:     func(topic string) (string, bool) { return "# " + topic + "\n", true },
		topics:    pages,
		wordings:  inEnglish(t),
	}
	if change != nil {
		change(&cfg)
	}
	w := &world{t: t, now: epoch}
	w.reg = &registry{w: w, live: map[string]msg.SlotInfo{}, silent: map[string]bool{}}
	w.a = &Actor{
		sys: rt.NewSystem(nil, nil), registry: w.reg, state: newState(cfg, w.reg), self: &self{w},
		clock: func() time.Time { return w.now },
		diagnose: func(_ context.Context, slots []msg.SlotInfo, slot string) []byte {
			return fmt.Appendf(nil, `{"slots":%d,"of":%q}`, len(slots), slot)
		},
	}
	t.Cleanup(w.a.sys.Close)
	w.a.ctx, w.a.cancel = context.WithCancel(context.Background())
	t.Cleanup(w.a.cancel)
	w.a.state.self = &ref{"server", w}
	w.step(begun{})
	w.log = nil
	return w
}

// slot adds a slot to the registry, with its present state.
func (w *world) slot(reported, live msg.SlotInfo) {
	w.reg.slots = append(w.reg.slots, reported)
	w.reg.live[live.Name] = live
}

// step plays one message and performs what follows from it, except messages of
// the actor to itself.
func (w *world) step(message any) {
	for _, e := range w.a.state.Step(w.now, message) {
		switch {
		case e.To != nil:
			e.To.Send(e.Message)
		case e.Ask != nil && w.hold:
			w.held = append(w.held, e.Ask)
		case e.Ask != nil:
			w.a.look(e.Ask)
		case e.Flush:
			w.a.self.Send(flushDue{})
		}
	}
}

// settle handles what the actor sent to itself.
func (w *world) settle() {
	for len(w.queue) > 0 {
		next := w.queue[0]
		w.queue = w.queue[1:]
		w.step(next)
	}
}

// effects plays messages and returns what others were sent.
func (w *world) effects(messages ...any) []string {
	w.log = nil
	for _, message := range messages {
		w.step(message)
	}
	w.settle()
	return w.log
}

func (w *world) expect(what string, message any, want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.effects(message)); diff != "" {
		w.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// join makes session n a member.
func (w *world) join(n uint64) { w.effects(w.joining(n, msg.HTTPClient)) }

func (w *world) joining(n uint64, kind msg.ClientKind) *msg.JoinSlot {
	return &msg.JoinSlot{Slot: Slot, Session: n, Client: &ref{fmt.Sprintf("c%d", n), w}, Kind: kind}
}

// request is a call of session n under the client's id 7.
func (w *world) request(n uint64, body string) *msg.ClientCall {
	f, err := wire.Scan([]byte(`{"jsonrpc":"2.0","id":7,` + body + `}`))
	if err != nil {
		w.t.Fatalf("scan %s: %v", body, err)
	}
	w.calls++
	return &msg.ClientCall{Session: n, Client: &ref{fmt.Sprintf("c%d", n), w}, Call: w.calls, Frame: f}
}

// answer is the one answer of session 1 to a request, without its frame around.
func (w *world) answer(body string) string {
	w.t.Helper()
	got := w.effects(w.request(1, body))
	if len(got) != 1 {
		w.t.Fatalf("%s has %d answers: %q", body, len(got), got)
	}
	return got[0]
}

func (w *world) answers(body, want string) {
	w.t.Helper()
	if got := w.answer(body); got != "c1 <- "+want {
		w.t.Errorf("%s:\n got %s\nwant c1 <- %s", body, got, want)
	}
}

func text(message any) string {
	switch m := message.(type) {
	case *msg.CallReply:
		return string(m.Frame)
	case *msg.CallFailed:
		return fmt.Sprintf("failed %d %s", m.Err.Code, m.Err.Message)
	case *msg.Notify:
		return fmt.Sprintf("note %s class=%d key=%s", m.Frame, m.Class, m.Key)
	case *msg.SlotJoined:
		return fmt.Sprintf("joined as %d", m.Session)
	case *msg.JoinRefused:
		return fmt.Sprintf("join refused %d %s", m.Err.Code, m.Err.Message)
	case *msg.EndSession:
		return "end: " + m.Why
	case *msg.SlotChanged:
		i := &m.Info
		return fmt.Sprintf("changed %s %s connected=%v aggregate=%v callers=%d", i.Name, i.Transport, i.Connected, i.Aggregate, i.Callers())
	}
	return fmt.Sprintf("%T", message)
}

// reply is an answer with a result.
func reply(result string) string { return `{"jsonrpc":"2.0","id":7,"result":` + result + `}` }

// says is a tool result of one text.
func says(text string, failed bool) string {
	return reply(fmt.Sprintf(`{"content":[{"type":"text","text":%s}],"isError":%v}`, wire.AppendString(nil, text), failed))
}

// returns is a tool result that is an object.
func returns(object string) string {
	return reply(fmt.Sprintf(`{"content":[{"type":"text","text":%s}],"structuredContent":%s,"isError":false}`, wire.AppendString(nil, object), object))
}

// files are wording files by path.
func files(pairs ...string) fstest.MapFS {
	m := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return m
}
