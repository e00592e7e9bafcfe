package scenarios

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"mcpbroker/provider"
)

// Bounds of what a runner waits for.
const (
	defaultPatience = 10 * time.Second // for what a step expects, unless it says otherwise
	stopTimeout     = 30 * time.Second // for a broker that was asked to stop
)

// runner carries out one script.
type runner struct {
	script *script
	out    *printer
	binary string
	dir    string // the scratch folder: of configuration files and those of the script
	pace   time.Duration

	patience time.Duration

	ctx        context.Context // ends when the script must
	giveUp     context.CancelCauseFunc
	life       context.Context // of peers and calls: ends when the runner tidies up
	background sync.WaitGroup

	log    feed[string]
	mark   int
	broker instance // nil while none runs
	embed  bool
	config map[string]any

	peers    map[string]*peer
	tunnels  map[string]*sharedTunnel
	clients  map[string]*client
	calls    map[string]<-chan outcome
	requests map[string]*request
	programs map[string]*program
}

// sharedTunnel is the socket of multiplexed peers.
type sharedTunnel struct {
	tunnel *provider.Tunnel
	valve  *valve
}

// stepError is the failure of one step.
type stepError struct {
	number int
	place  string
	err    error
}

func (e *stepError) Error() string { return fmt.Sprintf("step %d (%s): %v", e.number, e.place, e.err) }

func (e *stepError) Unwrap() error { return e.err }

// runScript carries out the script and tidies up. The error is a *stepError, or
// tells why the runner could not work.
func runScript(ctx context.Context, s *script, o Options, out *printer) (err error) {
	dir, err := os.MkdirTemp("", "scenario-")
	if err != nil {
		return fmt.Errorf("make a folder for the broker's configuration: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	r := &runner{
		script: s, out: out, binary: o.Broker, dir: dir, pace: o.pace(), patience: cmp.Or(o.patience, defaultPatience),
		peers: map[string]*peer{}, tunnels: map[string]*sharedTunnel{}, clients: map[string]*client{},
		calls: map[string]<-chan outcome{}, requests: map[string]*request{},
		programs: map[string]*program{},
	}
	r.ctx, r.giveUp = context.WithCancelCause(ctx)
	defer r.giveUp(nil)
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	r.life = life
	defer r.tidyUp(end)
	err = r.steps()
	out.stop()
	return err
}

func (r *runner) steps() error {
	for i, st := range r.script.steps {
		if err := r.step(i+1, st); err != nil {
			place := r.script.file + ":" + strconv.Itoa(st.line)
			return &stepError{i + 1, place, err}
		}
	}
	return context.Cause(r.ctx) // a broker that died during the last step
}

func (r *runner) step(n int, st step) error {
	if st.say != "" {
		r.out.narrate(n, st.say)
		if err := r.sleep(r.pace); err != nil {
			return err
		}
	}
	if !st.observes {
		r.mark = r.log.len()
	}
	err := st.action.run(r)
	if fault := context.Cause(r.ctx); err != nil && fault != nil {
		return fault // whatever the step was waiting for, this is why
	}
	return err
}

// tidyUp ends everything the script left behind.
func (r *runner) tidyUp(end context.CancelFunc) {
	end()
	for _, p := range r.peers {
		p.valve.resume() // a silent peer would not hear that it is closed
	}
	for _, c := range r.clients {
		if c.valve != nil {
			c.valve.resume()
		}
	}
	for _, p := range r.peers {
		p.link.cut()
	}
	for _, p := range r.programs {
		p.child.kill()
	}
	if r.broker != nil {
		// A script that went wrong does not wait for goodbyes.
		_ = r.endBroker(r.ctx.Err() != nil)
	}
	for _, c := range r.clients {
		c.link.cut()
	}
	r.background.Wait()
}

func (r *runner) startBroker() error {
	ctx, cancel := r.within(0)
	defer cancel()
	if r.embed {
		e, err := startEmbedded(ctx, r.script.port, r.script.beat, r.config, &r.log, r.out.log)
		if err != nil {
			return err
		}
		r.broker = e
		return nil
	}
	if err := r.writeConfig(); err != nil {
		return err
	}
	host, _ := r.config[stdioKey].(string)
	c, err := startChild(ctx, r.binary, r.configFile(), host != "", &r.log, r.out.log, r.giveUp)
	if err != nil {
		if errors.As(err, new(late)) {
			return fmt.Errorf("the broker did not start: %w", err)
		}
		return err
	}
	r.broker = c
	return nil
}

func (r *runner) configFile() string { return filepath.Join(r.dir, "broker.toml") }

func (r *runner) writeConfig() error {
	return writeConfig(r.configFile(), r.script.port, r.script.beat, r.config)
}

func (r *runner) endBroker(kill bool) error {
	b := r.broker
	r.broker = nil
	if b == nil {
		return nil
	}
	if kill {
		b.kill()
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), stopTimeout)
	defer cancel()
	return b.stop(ctx)
}

// inside returns the broker if it is in this process.
func (r *runner) inside() (*embedded, error) {
	if e, ok := r.broker.(*embedded); ok {
		return e, nil
	}
	return nil, errors.New("no broker runs in the runner's process")
}

func (r *runner) url() string { return "http://127.0.0.1:" + strconv.Itoa(r.script.port) }

func (r *runner) socketURL(path string) string {
	return "ws://127.0.0.1:" + strconv.Itoa(r.script.port) + path
}

// tunnel returns the tunnel a multiplexed peer names, or one of its own.
func (r *runner) tunnel(a *connectAction) *sharedTunnel {
	name, path := a.Tunnel, a.Path
	if name == "" {
		name = a.ID
	}
	if path == "" {
		path = "/providers"
	}
	t := r.tunnels[name]
	if t == nil {
		v := &valve{}
		t = &sharedTunnel{provider.NewTunnel(r.socketURL(path), provider.WithHTTPClient(v.client()), provider.WithLogger(quiet())), v}
		r.tunnels[name] = t
	}
	return t
}

// nextEvent waits for what happens next to a connection, which must match.
func (r *runner) nextEvent(id string, events *feed[event], within span, want string, match func(event) bool) error {
	ctx, cancel := r.within(within)
	defer cancel()
	e, err := events.take(ctx)
	if err != nil {
		return missed(ctx, id+": "+want)
	}
	if !match(e) {
		return unmet(id+": "+want, e.String())
	}
	return nil
}

// late ends a wait.
type late time.Duration

func (l late) Error() string { return fmt.Sprintf("nothing within %s", time.Duration(l)) }

// within is the context of one wait: it also ends when the script must end.
func (r *runner) within(limit span) (context.Context, context.CancelFunc) {
	d := limit.or(r.patience)
	return context.WithTimeoutCause(r.ctx, d, late(d))
}

func (r *runner) sleep(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	}
}

func unmet(expected, got string) error {
	return fmt.Errorf("expected %s, got %s", expected, excerpt(got))
}

// missed is the error of a wait that came to its end.
func missed(ctx context.Context, expected string) error {
	return fmt.Errorf("expected %s, got %w", expected, context.Cause(ctx))
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
