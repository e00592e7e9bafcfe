package introspection

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
	"mcpbroker/actors/wire"
)

// Config of the server. The zero value works: it has no guide and reports no
// problems.
type Config struct {
	Identity Identity

	// Configuration tells what became of the configuration file. It may be nil, and
	// must not wait.
	Configuration func() Configuration

	// Aggregate: the broker serves _all, of which _broker is always a member.
	Aggregate bool

	// Guide renders a page; Topics are the pages in their order.
	Guide  func(topic string) (page string, ok bool)
	Topics []Topic

	// Diagnose returns the report, a JSON object, about one slot or, where slot is
	// "", the whole broker. It runs beside the actor and may wait, until ctx ends.
	Diagnose func(ctx context.Context, slots []msg.SlotInfo, slot string) (report []byte)

	// Instances describes the upstreams of the broker, by slot; Restart makes the
	// connection of one again and does not wait for what comes of it. Both run
	// beside the actor, until ctx ends. Nil: the broker keeps no upstreams. What
	// they serve is offered from a HaveInstances on.
	Instances func(ctx context.Context) ([]msg.Instance, error)
	Restart   func(ctx context.Context, slot string) error

	Locale   string // of the wording, as in "fr" or "fr-CA"; "" is English
	Grammars string // directory of wording files that go before the packaged ones; "" for none

	MaxSessions               int // 0: 10000
	MaxPending                int // calls in flight; 0: 1024
	MaxSubscriptionsPerClient int // 0: 64
	MaxSubscriptionsPerSlot   int // 0: 1024
	MaxURILength              int // in UTF-16 units; 0: 2048
}

//go:embed wording
var packaged embed.FS

// Actor is the shell around a State. It is never restarted: a message whose
// handling fails changes nothing.
type Actor struct {
	sys       *rt.System
	registry  msg.Ref
	diagnose  func(ctx context.Context, slots []msg.SlotInfo, slot string) []byte
	instances func(ctx context.Context) ([]msg.Instance, error)
	restart   func(ctx context.Context, slot string) error
	clock     func() time.Time
	state     *State
	self      msg.Ref

	ctx    context.Context // of the questions to other slots
	cancel context.CancelFunc
}

// Start spawns the server. The caller gives the registry its Ref with
// HoldReserved; from then on the server reports itself. The error is a packaged
// wording file that is broken; files of Config.Grammars that are, are logged and
// left out.
func Start(sys *rt.System, registry msg.Ref, cfg Config) (*rt.Ref, error) {
	texts, err := loadWordings(sys, cfg.Locale, cfg.Grammars)
	if err != nil {
		return nil, err
	}
	a := &Actor{sys: sys, registry: registry, diagnose: cfg.Diagnose, instances: cfg.Instances, restart: cfg.Restart, clock: time.Now, state: newState(settings{
		identity: cfg.Identity, configuration: cfg.Configuration, aggregate: cfg.Aggregate, instances: cfg.Instances != nil && cfg.Restart != nil, guide: cfg.Guide, topics: cfg.Topics, wordings: texts,
		maxSessions: cfg.MaxSessions, maxPending: cfg.MaxPending, maxSubsPerClient: cfg.MaxSubscriptionsPerClient,
		maxSubsPerSlot: cfg.MaxSubscriptionsPerSlot, maxURIs: cfg.MaxURILength,
	}, registry)}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	// Before Started is handled nobody knows the address, so that no message can
	// come first.
	kind := rt.Kind{Name: "introspection", Mailbox: mailbox, Headroom: headroom, Overflow: refuse, Crashed: a.crashed, Resume: true}
	return sys.Ref(sys.Spawn(kind, a)), nil
}

// The registry reports each slot when the watch begins, which the headroom has to
// hold.
const (
	mailbox  = 4096
	headroom = 1 << 16
)

func loadWordings(sys *rt.System, locale, dir string) (*wordings, error) {
	texts := newWordings(locale)
	own, err := fs.Sub(packaged, "wording")
	if err != nil {
		return nil, fmt.Errorf("open the packaged wording: %w", err)
	}
	var broken []error
	texts.load(own, func(what string) { broken = append(broken, errors.New(what)) })
	if err := errors.Join(append(broken, texts.complete())...); err != nil {
		return nil, fmt.Errorf("load the packaged wording: %w", err)
	}
	if dir != "" {
		texts.load(os.DirFS(dir), func(what string) {
			sys.Log().Warn(fmt.Sprintf("[broker] wording files in %s: %s", dir, what))
		})
	}
	return texts, nil
}

// Receive implements rt.Actor.
func (a *Actor) Receive(c rt.Context) {
	switch m := c.Message().(type) {
	case *rt.Started:
		a.self = a.sys.Ref(c.Self())
		a.state.self = a.self
		a.step(begun{})
	case *rt.Stopping:
		a.cancel()
		a.step(ending{})
	case *rt.Stopped, *rt.Restarting:
	case *msg.DescribeSlot:
		m.Reply <- a.state.Info()
	case *retry:
		a.step(m.message)
	default:
		a.step(m)
	}
}

func (a *Actor) step(message any) {
	for _, e := range a.state.Step(a.clock(), message) {
		switch {
		case e.To != nil:
			e.To.Send(e.Message)
		case e.Ask != nil:
			a.sys.Go(func() { a.look(e.Ask) })
		case e.Flush:
			a.self.Send(flushDue{})
		}
	}
}

// refuse answers what found the mailbox full or the broker stopping. It runs on
// the sender's goroutine.
func refuse(message any) {
	switch m := message.(type) {
	case *msg.ClientCall:
		m.Client.Send(&msg.CallFailed{Call: m.Call, Err: wire.SlotBusy(Slot, "the slot's queue", mailbox)})
	default:
		rt.Refuse(m)
	}
}

// retry is a fact that is handled again after a failure.
type retry struct {
	message any
	times   int
}

// ControlMessage implements the marker of actors/rt.
func (*retry) ControlMessage() {}

const maxRetries = 3

// crashed answers the one caller of the message whose handling failed. Facts that
// nobody tells twice are handled again.
func (a *Actor) crashed(message any) {
	switch m := message.(type) {
	case *msg.ClientCall:
		m.Client.Send(&msg.CallFailed{Call: m.Call, Err: wire.Crashed(Slot)})
	case *msg.JoinSlot:
		m.Client.Send(&msg.JoinRefused{Err: wire.Crashed(Slot)})
	case *msg.LeaveSlot, *msg.CallerLeft, *roundDone, *msg.SlotObserved, *msg.SlotForgotten, *HaveInstances, flushDue:
		a.self.Send(&retry{message: m, times: 1})
	case *retry:
		if m.times < maxRetries {
			a.self.Send(&retry{message: m.message, times: m.times + 1})
		}
	default:
		rt.Refuse(m)
	}
}
