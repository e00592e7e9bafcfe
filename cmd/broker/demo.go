package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"mcpbroker/provider"
)

// demoSlot is where --demo publishes.
const demoSlot = "demo"

// demoServer is a provider to try a broker with: echo and clock.
func demoServer(version string, now func() time.Time) *provider.Server {
	s := provider.NewServer("mcp-broker demo", version)
	s.AddTool(provider.Tool{
		Name:        "echo",
		Description: "Returns the message it is given.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"message":{"type":"string"}},` +
			`"required":["message"],"additionalProperties":false}`),
	}, func(_ context.Context, call *provider.Call) (*provider.Result, error) {
		var args struct {
			Message *string `json:"message"`
		}
		if err := call.Decode(&args); err != nil {
			return nil, err
		}
		if args.Message == nil {
			return nil, errors.New(`echo needs the argument "message", a string`)
		}
		return provider.Text(*args.Message), nil
	})
	s.AddTool(provider.Tool{
		Name:        "clock",
		Description: "Returns the broker's time in UTC.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`),
	}, func(context.Context, *provider.Call) (*provider.Result, error) {
		return provider.Text(now().UTC().Format(time.RFC3339)), nil
	})
	return s
}

// startDemo publishes the demo server and returns once its slot is held. The
// returned function withdraws it and waits until it is gone.
func startDemo(ctx context.Context, a provider.Attacher, log *slog.Logger, version string) (stop func(), err error) {
	s := demoServer(version, time.Now)
	s.Logger = log
	ctx, cancel := context.WithCancel(ctx)
	opened := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- s.Serve(ctx, func(ev provider.Events) provider.Transport {
			open := ev.Open
			ev.Open = func() {
				if open != nil {
					open()
				}
				close(opened)
			}
			return provider.NewLoopback(demoSlot, a, ev, provider.WithAggregate(true), provider.WithLogger(log))
		})
	}()
	select {
	case <-opened:
		return func() { cancel(); <-ended }, nil
	case err := <-ended:
		cancel()
		if err == nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
}
