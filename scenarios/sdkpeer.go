package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"mcpbroker/provider"
)

// sdkLink is a peer that is written like any provider: the SDK's server over one
// of its transports.
type sdkLink struct {
	server    *provider.Server
	transport func(provider.Events) provider.Transport
	tunnel    *provider.Tunnel // nil for a socket of its own
	held      held

	mu      sync.Mutex
	current provider.Transport
	cancel  context.CancelFunc
	done    chan struct{}

	leaving atomic.Bool // by the script, so the end is no fault
}

// tools returns the server every SDK peer runs. Its tools answer at once, except
// hold, which the script answers.
func tools(id string) *provider.Server {
	s := provider.NewServer("scenario provider "+id, "1.0.0")
	s.Logger = slog.New(slog.DiscardHandler)
	s.AddTool(provider.Tool{Name: "whoami", Description: "Names the provider that answers."},
		func(context.Context, *provider.Call) (*provider.Result, error) { return provider.Text(id), nil })
	s.AddTool(provider.Tool{
		Name: "echo", Description: "Returns its text.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`),
	}, func(_ context.Context, call *provider.Call) (*provider.Result, error) {
		var args struct {
			Text string `json:"text"`
		}
		if err := call.Decode(&args); err != nil {
			return nil, err
		}
		return provider.Text(args.Text), nil
	})
	s.AddTool(provider.Tool{Name: "hold", Description: "Is answered when the scenario says so, or never."},
		func(context.Context, *provider.Call) (*provider.Result, error) {
			return nil, errors.New("a held call reached the server")
		})
	return s
}

func (l *sdkLink) open(ctx context.Context, p *peer) {
	ctx, cancel := context.WithCancel(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	done := make(chan struct{})
	l.cancel, l.done = cancel, done
	l.leaving.Store(false)
	go func() {
		defer close(done)
		defer cancel()
		l.serve(ctx, p)
	}()
}

func (l *sdkLink) serve(ctx context.Context, p *peer) {
	var opened atomic.Bool
	err := l.server.Serve(ctx, func(ev provider.Events) provider.Transport {
		t := l.transport(l.observe(ev, p, &opened))
		l.mu.Lock()
		l.current = t
		l.mu.Unlock()
		return t
	})
	if err != nil && !opened.Load() {
		p.emit(event{kind: eventFailed, text: err.Error()})
	}
}

// observe adds to the server's callbacks what the script wants to know.
func (l *sdkLink) observe(ev provider.Events, p *peer, opened *atomic.Bool) provider.Events {
	var closed *provider.CloseError // callbacks never run concurrently
	return provider.Events{
		Open: func() {
			opened.Store(true)
			closed = nil
			p.emit(event{kind: eventOpen})
		},
		Message: func(text []byte) {
			switch f := frameOf(text); {
			case p.ponged(f):
			case l.held.takes(f):
				p.frames.add(f)
			default:
				ev.Message(text)
			}
		},
		Error: func(err error) {
			ev.Error(err)
			var refused *provider.TunnelError
			if errors.As(err, &refused) {
				p.emit(event{eventRefused, refused.Code, refused.Message})
			}
			_ = errors.As(err, &closed)
		},
		Close: func() {
			ev.Close()
			p.emit(l.closing(closed))
		},
	}
}

// closing tells how the connection ended. A shared tunnel reports no error of
// its own to its slots.
func (l *sdkLink) closing(err *provider.CloseError) event {
	if err == nil && l.tunnel != nil && !l.leaving.Load() {
		err = l.tunnel.LastClose()
	}
	if err == nil {
		return event{kind: eventClosed, code: 1000}
	}
	return event{eventClosed, err.Code, err.Reason}
}

func (l *sdkLink) send(_ context.Context, frame []byte) error {
	l.mu.Lock()
	t := l.current
	l.mu.Unlock()
	if t == nil {
		return errors.New("the provider has never connected")
	}
	return t.Send(frame)
}

func (l *sdkLink) answersPings() bool { return true }

func (l *sdkLink) close(int, string) { l.cut() }

func (l *sdkLink) cut() {
	l.leaving.Store(true)
	l.mu.Lock()
	cancel, done := l.cancel, l.done
	l.mu.Unlock()
	if cancel != nil {
		cancel()
		<-done
	}
}
