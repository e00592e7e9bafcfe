package remote

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/wire"
)

// What a slot has set up at the server is set up again in a session that was opened in the
// place of another: the slot only hears that there is one.

const setLevel = "logging/setLevel"

// Bounds of that: requests kept, and how many of them are repeated side by side.
const (
	maxSetup    = 1024
	maxRestores = 8
)

// setup are the requests that outlast their answer. The zero value is ready.
type setup struct {
	mu     sync.Mutex
	frames map[string]*wire.Frame
}

// note keeps an answered request, or drops the one it takes back.
func (s *setup) note(f *wire.Frame) {
	key := string(f.Raw(f.URI))
	switch string(f.Method) {
	case mcp.Subscribe, mcp.Unsubscribe:
	case setLevel:
		key = setLevel
	default:
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if string(f.Method) == mcp.Unsubscribe {
		delete(s.frames, key)
		return
	}
	if s.frames == nil {
		s.frames = map[string]*wire.Frame{}
	}
	if s.frames[key] != nil || len(s.frames) < maxSetup {
		s.frames[key] = f
	}
}

func (s *setup) list() []*wire.Frame {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*wire.Frame
	for _, key := range slices.Sorted(maps.Keys(s.frames)) {
		list = append(list, s.frames[key])
	}
	return list
}

// restore repeats the kept requests in a session; their answers are nobody's.
func (s *streamable) restore(in session) {
	var group sync.WaitGroup
	places := make(chan struct{}, maxRestores)
	for _, f := range s.setup.list() {
		places <- struct{}{}
		group.Go(func() {
			defer func() { <-places }()
			if err := s.repeat(f, in); err != nil && s.ctx.Err() == nil {
				s.log(slog.LevelWarn, s.mask(fmt.Sprintf("%s could not be repeated in the new session: %s", f.Method, sentence(err))))
			}
		})
	}
	group.Wait()
}

func (s *streamable) repeat(f *wire.Frame, in session) error {
	ctx, cancel := context.WithTimeout(s.ctx, renewTimeout)
	defer cancel()
	resp, err := s.post(ctx, f.Bytes, in)
	if err != nil {
		return err
	}
	answer := func(answer *wire.Frame) {
		if answer.Error.Present() {
			s.log(slog.LevelWarn, s.mask(fmt.Sprintf("%s was refused in the new session: %s", f.Method, wire.Excerpt(answer.Raw(answer.Error)))))
		}
	}
	return s.read(ctx, resp, in, reading{id: f.Raw(f.ID), answer: answer, other: s.incoming})
}
