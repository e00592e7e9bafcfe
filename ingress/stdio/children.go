package stdio

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
)

// Config is one command.
type Config struct {
	Name    string        // of its slot, for the log
	Command string        // a path, or a name that is looked up in the PATH of Env
	Args    []string      // passed as they are; no shell sees them
	Env     []string      // the whole environment, as KEY=value
	Dir     string        // working directory; empty is the broker's
	Secrets []string      // taken out of whatever is told of it; multi-line ones line by line
	Limit   int           // bytes of one message; default 4 MiB
	Grace   time.Duration // for the process group to end; 0 is none: it is killed at once
}

func (c Config) withDefaults() Config {
	c.Limit = cmp.Or(c.Limit, 4<<20)
	return c
}

// bounds of one child; tests have others.
type bounds struct {
	outbox  int           // bytes that wait for the child to read its stdin
	stalled time.Duration // one write that makes no headway
	hint    time.Duration // of a grace, for a child to end with its stdin before it is told to
	exit    time.Duration // for a process that closed a pipe to be seen exiting: it does the one just before the other, and its exit code tells more
	rest    time.Duration // of a grace, for what is left of a child that has ended its connection itself
	killed  time.Duration // for a process to be gone after KILL
	drain   time.Duration // for what is left in the pipes of a process that has ended
}

var defaultBounds = bounds{
	outbox: 16 << 20, stalled: time.Minute, hint: 500 * time.Millisecond, exit: time.Second,
	rest: 2 * time.Second, killed: 2 * time.Second, drain: 2 * time.Second,
}

// maxStarts is how many processes are being started at once. A start costs memory
// and processor time at the same moment for all of them; hundreds of sessions may
// ask for one each.
const maxStarts = 8

// Children are the living child processes of a broker.
type Children struct {
	sys    *rt.System
	bounds bounds
	starts chan struct{} // holds one for each process being started

	mu     sync.Mutex
	closed bool
	living map[*child]struct{}
	all    sync.WaitGroup
	told   map[string]string // by name: how its last child ended, as logged
	stuck  []error           // processes that outlive KILL

	unguarded sync.Once
}

// New returns the parent of children that log to sys.
func New(sys *rt.System) *Children {
	return &Children{sys: sys, bounds: defaultBounds, starts: make(chan struct{}, maxStarts), living: map[*child]struct{}{}, told: map[string]string{}}
}

// Start starts a command and tells owner what comes of it, with this gen. It
// never blocks: at most 8 processes are being started at once, and others wait their
// turn. cancel stops it, opened or not; UpstreamEnded follows all the same.
func (c *Children) Start(cfg Config, owner msg.Ref, gen uint64) (cancel func()) {
	cfg = cfg.withDefaults()
	ch := newChild(c, cfg, owner, gen)
	if !c.admit(ch) {
		owner.Send(&msg.UpstreamEnded{Gen: gen, Err: rt.ErrStopped})
		return func() {}
	}
	go func() {
		defer c.forget(ch)
		ch.live()
	}()
	return func() { ch.Stop(cfg.Grace) }
}

func (c *Children) admit(ch *child) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.living[ch] = struct{}{}
	c.all.Add(1)
	return true
}

func (c *Children) forget(ch *child) {
	c.mu.Lock()
	delete(c.living, ch)
	c.mu.Unlock()
	c.all.Done()
}

// Stop ends all children in parallel, each within its grace, and waits for them.
// When ctx ends first those still alive are killed. A process that outlives even that is
// waited for some seconds, and is an error. Nothing starts afterwards.
func (c *Children) Stop(ctx context.Context) error {
	c.each(func(ch *child) { ch.Stop(ch.cfg.Grace) })
	gone := make(chan struct{})
	go func() {
		c.all.Wait()
		close(gone)
	}()
	var late error
	select {
	case <-gone:
	case <-ctx.Done():
		late = fmt.Errorf("stop the child processes: %w; those still running were killed", ctx.Err())
		c.each((*child).hurry)
		// each bound behind KILL is waited for once, the drain of both pipes and of the writer
		if most := c.bounds.killed + 2*c.bounds.drain + time.Second; !within(most, gone) {
			late = fmt.Errorf("%w; some are still there %s later", late, most)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(append([]error{late}, c.stuck...)...)
}

// leaveBehind remembers a process that nobody waits for any more.
func (c *Children) leaveBehind(stuck error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stuck = append(c.stuck, stuck)
}

func (c *Children) each(do func(*child)) {
	c.mu.Lock()
	c.closed = true
	living := make([]*child, 0, len(c.living))
	for ch := range c.living {
		living = append(living, ch)
	}
	c.mu.Unlock()
	for _, ch := range living {
		do(ch)
	}
}

// tell logs how a child ended: once, when the attempts after it end the same way.
func (c *Children) tell(name, how string, lasted time.Duration) {
	const proven = time.Minute
	c.mu.Lock()
	known := c.told[name] == how && lasted < proven
	c.told[name] = how
	c.mu.Unlock()
	if !known {
		c.sys.Log().Error(fmt.Sprintf(`[broker] StdioUpstream "%s": %s`, name, how))
	}
}

// warnUnguarded says once that no guard can be had.
func (c *Children) warnUnguarded(err error) {
	c.unguarded.Do(func() {
		c.sys.Log().Warn("[broker] no process guard can be started; should the broker be killed, the children of its stdio upstreams may outlive it",
			slog.Any("error", err))
	})
}
