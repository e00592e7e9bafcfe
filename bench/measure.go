package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// callRow measures calls with one payload size and number of sessions.
type callRow struct {
	name           string
	size, sessions int
	ratio          float64 // of the bare server's calls per second, at least
	cpu            float64 // of the broker, ms per call, at most; 0 for no target
}

func callRows() []callRow {
	return []callRow{
		{name: "64 B x 1", size: 64, sessions: 1, ratio: 0.50},
		{name: "64 B x 16", size: 64, sessions: 16, ratio: 0.45, cpu: 0.15},
		{name: "64 B x 256", size: 64, sessions: 256, ratio: 0.65},
		{name: "4 KiB x 16", size: 4 << 10, sessions: 16, ratio: 0.70},
		{name: "256 KiB x 16", size: 256 << 10, sessions: 16, ratio: 0.90},
	}
}

func (o options) chosenCalls() (rows []callRow) {
	for _, row := range callRows() {
		if o.only.MatchString(row.name) {
			rows = append(rows, row)
		}
	}
	return rows
}

func (o options) chosenIdle() (rows []idleRow) {
	for _, row := range idleRows() {
		if o.only.MatchString(row.name) {
			rows = append(rows, row)
		}
	}
	return rows
}

// bench makes the measurements.
type bench struct {
	options
	self   string // this program, which plays every role but the broker's
	broker string
	dir    string // temporary, holds no configuration file
	log    io.Writer
}

const buildTimeout = 5 * time.Minute

// newBench builds the broker from the module this program belongs to.
func newBench(ctx context.Context, o options, log io.Writer) (*bench, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	dir, err := os.MkdirTemp("", "mcpbroker-bench-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the broker: %w", err)
	}
	b := &bench{options: o, self: self, broker: filepath.Join(dir, "broker"), dir: dir, log: log}
	ctx, cancel := context.WithTimeout(ctx, buildTimeout)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", b.broker, "mcpbroker/cmd/broker").CombinedOutput(); err != nil {
		b.remove()
		return nil, fmt.Errorf("build the broker: %w\n%s", err, out)
	}
	return b, nil
}

func (b *bench) remove() { _ = os.RemoveAll(b.dir) }

// measure makes all chosen measurements. Each row has processes of its own, so
// that no row pays for what an earlier one left behind.
func (b *bench) measure(ctx context.Context) (*report, error) {
	r := &report{Measured: time.Now().UTC(), Machine: machine(), Runs: b.runs, Window: b.window, Pin: b.pin.String(), Idle: b.idle}
	for _, row := range b.chosenCalls() {
		pairs, err := b.calls(ctx, row)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", row.name, err)
		}
		r.addCalls(row, pairs)
	}
	for _, row := range b.chosenIdle() {
		var runs []growth
		for i := range b.runs {
			b.progress(row.name, i)
			g, err := b.growth(ctx, row)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", row.name, err)
			}
			runs = append(runs, g)
		}
		r.addIdle(row, runs)
	}
	return r, nil
}

func (b *bench) progress(row string, i int) {
	fmt.Fprintf(b.log, "%s: run %d of %d\n", row, i+1, b.runs)
}

// pair is the broker and the bare server, measured one right after the other.
type pair struct {
	Broker *loadResult `json:"broker"`
	Bare   *loadResult `json:"bare"`
}

func (p pair) ratio() float64 { return p.Broker.rate() / p.Bare.rate() }

// calls measures one row. The two servers take turns, and take turns in going
// first, so that a machine whose speed drifts favours neither.
func (b *bench) calls(ctx context.Context, row callRow) (pairs []pair, err error) {
	f, err := b.startBroker(ctx)
	defer func() { err = errors.Join(err, f.stop()) }()
	if err != nil {
		return nil, err
	}
	bare, err := startChild(ctx, "the bare server", b.dir, pinned(b.pin.servers, b.self, "bare"))
	if err != nil {
		return nil, err
	}
	broker := f[0]
	f = append(f, bare)
	for i := range b.runs {
		b.progress(row.name, i)
		var p pair
		measureBroker := func() (err error) {
			p.Broker, err = b.load(ctx, row, clientURL(broker.url), broker.pid())
			return err
		}
		measureBare := func() (err error) {
			p.Bare, err = b.load(ctx, row, bare.url+"/mcp", bare.pid())
			return err
		}
		first, second := measureBroker, measureBare
		if i%2 == 1 {
			first, second = second, first
		}
		if err := first(); err != nil {
			return nil, err
		}
		if err := second(); err != nil {
			return nil, err
		}
		pairs = append(pairs, p)
	}
	return pairs, nil
}

// load runs one measurement in a process of its own.
func (b *bench) load(ctx context.Context, row callRow, target string, pid int) (*loadResult, error) {
	spec := loadSpec{URL: target, Sessions: row.sessions, Size: row.size, Warmup: b.window / 4, Window: b.window, PID: pid}
	argument, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("describe the load: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, spec.Warmup+spec.Window+2*callTimeout)
	defer cancel()
	cmd := command(ctx, pinned(b.pin.others, b.self, "load", string(argument)))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("load on %s: %w\n%s", target, err, &stderr)
	}
	result := new(loadResult)
	if err := json.Unmarshal(stdout.Bytes(), result); err != nil {
		return nil, fmt.Errorf("load on %s: %w", target, err)
	}
	return result, nil
}

// slot is where the measured provider is.
const slot = "bench"

// startBroker starts a broker and its provider. The caller stops the fleet even
// after an error.
func (b *bench) startBroker(ctx context.Context) (f fleet, err error) {
	broker, err := startChild(ctx, "the broker", b.dir,
		pinned(b.pin.servers, b.broker, "run", "--port", "0", "--host", "127.0.0.1", "--log-format", "json"))
	if err != nil {
		return f, err
	}
	f = append(f, broker)
	if broker.url, err = loopback(broker.url); err != nil {
		return f, err
	}
	provider, err := startChild(ctx, "the provider", b.dir, pinned(b.pin.others, b.self, "provider", providerURL(broker.url, slot)))
	if err != nil {
		return f, err
	}
	f = append(f, provider)
	return f, awaitSlot(ctx, clientURL(broker.url))
}

// awaitSlot waits until the slot answers: a socket is open before its slot is held.
func awaitSlot(ctx context.Context, target string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	client := newClient(1)
	defer client.CloseIdleConnections()
	for {
		s, err := openSession(ctx, client, target)
		if err == nil {
			return closeSessions(ctx, []*session{s})
		}
		if pause(ctx, 20*time.Millisecond) != nil {
			return fmt.Errorf("wait for the provider: %w", err)
		}
	}
}

// loopback replaces the host of an announced URL, a name for people, by the
// address that was asked for.
func loopback(announced string) (string, error) {
	u, err := url.Parse(announced)
	if err != nil {
		return "", fmt.Errorf("the broker's URL: %w", err)
	}
	return "http://" + net.JoinHostPort("127.0.0.1", u.Port()), nil
}

func clientURL(base string) string { return base + "/" + slot + "/mcp" }

// providerURL is where a provider holds a slot; the WebSocket library takes http for ws.
func providerURL(base, slot string) string { return base + "/provider/" + slot }
