package stdio

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
	"mcpbroker/actors/wire"
	"mcpbroker/internal/mask"
)

// framesInFlight bounds what a child has said and its slot not yet handled.
const framesInFlight = 64

// child is one incarnation of an upstream. It implements msg.Driver.
type child struct {
	all   *Children
	cfg   Config
	owner msg.Ref
	gen   uint64

	quit      chan struct{} // closed by Stop
	quitOnce  sync.Once
	grace     time.Duration // set before quit is closed
	killed    chan struct{} // closed by hurry
	killOnce  sync.Once
	fault     chan ended    // the first thing that went wrong with its pipes
	mute      chan struct{} // closed once nothing of it may reach the slot any more
	muteOnce  sync.Once
	attached  chan struct{}
	attachOne sync.Once
	slot      msg.Ref // with slotGen, set before attached is closed
	slotGen   uint64

	group   group
	in      *os.File // the child's stdin
	outbox  *rt.Outbox
	batch   []byte // of the writer
	taken   int    // bytes of the present batch that its stdin has taken; of the writer
	credits rt.Credits
	mask    *mask.Mask
	speech  *speech
	banner  string // the first line on stdout, as long as none was a message; of the reader
	spoke   bool   // a message came; of the reader
	exit    string // how its process ended; of run
}

var _ msg.Driver = (*child)(nil)

func newChild(all *Children, cfg Config, owner msg.Ref, gen uint64) *child {
	c := &child{
		all: all, cfg: cfg, owner: owner, gen: gen,
		quit: make(chan struct{}), killed: make(chan struct{}), fault: make(chan ended, 1),
		mute: make(chan struct{}), attached: make(chan struct{}),
		credits: rt.NewCredits(framesInFlight), mask: mask.New(cfg.Secrets),
	}
	c.speech = &speech{name: cfg.Name, log: all.sys.Log(), owner: owner, gen: gen, mask: c.mask}
	c.outbox = c.newOutbox()
	return c
}

// Send implements msg.Conduit.
func (c *child) Send(frame []byte, class mcp.Class) bool {
	return c.outbox.Push(rt.Item{Frame: frame, Class: class})
}

// Attach implements msg.Driver.
func (c *child) Attach(slot msg.Ref, gen uint64) {
	c.attachOne.Do(func() {
		c.slot, c.slotGen = slot, gen
		close(c.attached)
	})
}

// Stop implements msg.Driver. The first call counts.
func (c *child) Stop(grace time.Duration) {
	c.quitOnce.Do(func() {
		c.grace = grace
		close(c.quit)
	})
	c.silence()
}

// hurry ends what is left of a grace.
func (c *child) hurry() { c.killOnce.Do(func() { close(c.killed) }) }

func (c *child) silence() { c.muteOnce.Do(func() { close(c.mute) }) }

func (c *child) fail(how ended) {
	select {
	case c.fault <- how:
	default:
	}
}

// stopped reports that Stop was called.
func (c *child) stopped() bool { return closed(c.quit) }

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// live is the whole life of the child, from its start to its last word.
func (c *child) live() {
	begun := time.Now()
	how, err := c.run()
	c.speech.end()
	last := &msg.UpstreamEnded{Gen: c.gen, Exit: c.exit, Tail: c.speech.lines(), Unsent: c.unsent()}
	var stuck *unendingError
	if !c.stopped() || errors.As(err, &stuck) {
		last.Err = c.mask.Error(err)
		c.all.tell(c.cfg.Name, c.mask.Text(how), time.Since(begun))
	}
	c.owner.Send(last)
}

// turn waits until the child may start; false when it was stopped before.
func (c *child) turn() bool {
	select {
	case <-c.quit:
		return false
	case c.all.starts <- struct{}{}:
	}
	if c.stopped() { // both were ready
		<-c.all.starts
		return false
	}
	return true
}

// run returns how the child ended: for the log, and with what it last said.
func (c *child) run() (how string, err error) {
	if !c.turn() {
		return "", nil
	}
	p, err := c.start()
	<-c.all.starts
	if err != nil {
		return "process error, " + err.Error(), err
	}
	var readers sync.WaitGroup
	readers.Go(func() { c.readMessages(p.stdout) })
	readers.Go(func() { c.speech.read(p.stderr) })
	gone := make(chan struct{}) // it has exited, and nobody holds its pipes
	go func() {
		<-p.exited
		readers.Wait()
		close(gone)
	}()
	c.owner.Send(&msg.UpstreamOpened{Gen: c.gen, Driver: c, PID: p.cmd.Process.Pid, Mask: c.mask.Text})

	fault := c.serve(p, gone)
	c.group.kill()
	if !within(c.all.bounds.killed, p.exited) {
		return c.abandon(p, &readers)
	}
	// What it said last may still be in the pipes. A process that left the group
	// can hold them open for ever.
	left := !within(c.all.bounds.drain, gone)
	if left {
		c.silence()
		_ = p.stdout.Close()
		_ = p.stderr.Close()
		<-gone
	}
	c.silence()
	p.close()
	c.group.release()

	end := exitWords(p.cmd.ProcessState)
	c.exit = end.brief()
	if fault != "" {
		end = fault
	}
	if left {
		end += "; a process it left behind holds its pipes (a server has to stay in the foreground)"
	}
	return "process " + string(end), c.lastWords(end)
}

// abandon leaves a process alone that outlives KILL, as one does that hangs in the
// kernel.
func (c *child) abandon(p *process, readers *sync.WaitGroup) (how string, err error) {
	stuck := &unendingError{p.cmd.Process.Pid}
	c.all.leaveBehind(stuck)
	c.silence()
	p.close()
	readers.Wait() // they log, and tell the owner
	go func() {
		<-p.exited
		c.group.release()
	}()
	return stuck.Error(), stuck
}

// unendingError is a process that outlives KILL.
type unendingError struct{ pid int }

func (e *unendingError) Error() string { return fmt.Sprintf("process %d cannot be ended", e.pid) }

// serve waits until there is a reason to end the child, and sees to an orderly end. It
// returns what is wrong with a child that did not end by itself.
func (c *child) serve(p *process, gone <-chan struct{}) (fault ended) {
	select {
	case <-p.exited:
	case fault = <-c.fault:
		if within(c.all.bounds.exit, p.exited) {
			fault = ""
		}
	case <-c.quit:
		c.leave(gone)
		return ""
	}
	c.clear(p, gone)
	return fault
}

// clear ends in order what is left of a child whose connection has ended without Stop.
// Its grace is short: the callers wait for the word that the connection is dead, and the
// next process for its place.
func (c *child) clear(p *process, gone <-chan struct{}) {
	rest := min(c.cfg.Grace, c.all.bounds.rest)
	if rest <= 0 {
		return
	}
	_ = c.in.Close()
	c.group.terminate()
	deadline := time.NewTimer(rest)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond) // a stranger may hold the pipes when the group has ended
	defer tick.Stop()
	for quit := c.quit; !closed(p.exited) || c.group.left(); {
		select {
		case <-quit:
			if c.grace <= 0 {
				return
			}
			quit = nil
		case <-gone:
			return
		case <-c.killed:
			return
		case <-deadline.C:
			return
		case <-tick.C:
		}
	}
}

// leave ends the child in order, within its grace.
func (c *child) leave(gone <-chan struct{}) {
	if c.grace <= 0 {
		return
	}
	deadline := time.NewTimer(c.grace)
	defer deadline.Stop()
	hint := time.NewTimer(min(c.grace/4, c.all.bounds.hint))
	defer hint.Stop()
	// A server may know from the end of its stdin that it is not needed any more.
	c.outbox.Finish(func() { _ = c.in.Close() })
	select {
	case <-gone:
		return
	case <-c.killed:
		return
	case <-hint.C:
	}
	c.group.terminate()
	select {
	case <-gone:
	case <-c.killed:
	case <-deadline.C:
	}
}

// within waits for a channel to close, for so long at most.
func within(d time.Duration, done <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// lastWords adds to how a child ended what it said before.
func (c *child) lastWords(how ended) error {
	if said := c.speech.lastWords(); len(said) > 0 {
		how += ended("; its stderr ends with: " + strings.Join(said, " | "))
	}
	if c.banner != "" {
		how += ended("; its standard output is not JSON-RPC: " + string(wire.AppendString(nil, c.banner)))
	}
	return how
}

// ended is how a child ended, in words.
type ended string

func (e ended) Error() string { return "it " + string(e) }

// brief is the same as a noun.
func (e ended) brief() string {
	return strings.TrimPrefix(strings.Replace(string(e), "exited with code", "exit code", 1), "was ")
}
