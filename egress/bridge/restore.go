package bridge

import (
	"context"
	"strconv"
	"sync"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/wire"
)

// A host that does not notice the new session would wait in vain for the updates
// it subscribed to in the old one. So its subscriptions, and its log level, are
// set up again.

// maxSetup is how many requests are kept for that, and maxRestores how often one is
// repeated while the slot has no provider.
const (
	maxSetup    = 1000
	maxRestores = 20
)

const setLevel = "logging/setLevel"

// setup are the host's requests that outlast their answer. The zero value is ready.
type setup struct {
	mu     sync.Mutex
	frames map[string]wire.Frame
}

// note keeps an answered request, or drops the one it takes back.
func (s *setup) note(f *wire.Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := string(f.Raw(f.URI))
	switch string(f.Method) {
	case mcp.Unsubscribe:
		delete(s.frames, key)
		return
	case setLevel:
		key = setLevel
	case mcp.Subscribe:
	default:
		return
	}
	if s.frames == nil {
		s.frames = map[string]wire.Frame{}
	}
	if len(s.frames) < maxSetup {
		s.frames[key] = *f
	}
}

func (s *setup) list() map[string]wire.Frame {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make(map[string]wire.Frame, len(s.frames))
	for key, f := range s.frames {
		list[key] = f
	}
	return list
}

// restore repeats the kept requests in session s, and tells the host to read again
// what it may have missed.
func (b *bridge) restore(ctx context.Context, s session) {
	left := b.setup.list()
	for n := 0; len(left) > 0 && n < maxRestores; n++ {
		for key, f := range left {
			switch b.repeat(ctx, &f, s) {
			case done:
				if f.URI.Present() {
					b.send(updated(f.Raw(f.URI)))
				}
				delete(left, key)
			case refused:
				delete(left, key)
			case later:
			}
		}
		if len(left) > 0 && (!b.pause(ctx, n, nil) || b.current().number != s.number) {
			return
		}
	}
}

func updated(uri []byte) []byte {
	b := []byte(`{"jsonrpc":"2.0","method":"` + mcp.ResourceUpdated + `","params":{"uri":`)
	return append(append(b, uri...), "}}"...)
}

type outcome uint8

const (
	done outcome = iota
	refused
	later
)

// repeat asks once more what the host has asked; the answer is not for the host.
func (b *bridge) repeat(ctx context.Context, f *wire.Frame, s session) outcome {
	resp, err := b.post(ctx, f.Bytes, s)
	if err != nil {
		return later
	}
	defer discard(resp)
	answer, err := b.response(resp, f.Raw(f.ID))
	if err != nil {
		return later
	}
	said := wire.Member(answer, "error")
	switch code := string(wire.Member(said, "code")); {
	case said == nil:
		return done
	case code == strconv.Itoa(wire.CodeUnavailable): // no provider yet
		return later
	}
	return refused
}
