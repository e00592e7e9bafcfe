package upstreams

import (
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	"mcpbroker/actors/wire"
)

// A readiness check may fail for what no new connection mends: its tool is not there, or
// what is behind the server is down. So the connection is made again once. If the first
// check of the new one fails in the same way, it stays: the server is unhealthy and
// serves, until a check passes.

// manner is how a check failed.
type manner string

const (
	faulty manner = "faulty" // it was answered with a fault
	mute   manner = "mute"   // it was not answered
)

// remedy is what came of making the connection again.
type remedy struct {
	tried   manner // how the check failed that it was made again for; empty is not tried
	vain    bool   // a check still fails in this way
	others  int    // checks in a row that failed in another way since
	missing bool   // the tool is not in its tools/list
}

// unremedied reports that making the connection again is no remedy for a check that
// failed.
func (s *State) unremedied(now time.Time, n news, first bool) bool {
	r := &s.remedy
	same := r.tried == n.manner && s.cfg.Health.Tool != ""
	switch {
	case r.vain && same:
		r.others = 0
		if r.missing {
			s.lastError = s.toolMissing()
		}
		return true
	case r.vain:
		r.others++
		return r.others < s.cfg.Health.Threshold
	case !first || !same:
		return false
	}
	r.vain = true
	s.log(slog.LevelWarn, `[broker] upstream "%s" is unhealthy: %s; making its connection again did not help, so it stays as it is until a check passes`, s.cfg.Slot, s.lastError)
	s.note(now, "making its connection again did not help: it stays")
	if n.manner == faulty {
		s.check.pages = 0
		s.lookUp(now, "{}")
	}
	return true
}

// maxPages is how many pages of tools/list are looked through.
const maxPages = 20

// lookUp looks for the tool of the check.
func (s *State) lookUp(now time.Time, params string) {
	s.check.pages++
	s.check.lookup, s.check.deadline = true, now.Add(s.cfg.Health.Timeout)
	s.call("tools/list", params)
}

func (s *State) looked(now time.Time, f *wire.Frame, err error) {
	var list struct {
		Tools []struct{ Name string }
		Next  string `json:"nextCursor"`
	}
	if err != nil || json.Unmarshal(f.Raw(f.Result), &list) != nil {
		return
	}
	found := slices.ContainsFunc(list.Tools, func(tool struct{ Name string }) bool { return tool.Name == s.cfg.Health.Tool })
	switch {
	case found:
	case list.Next == "":
		s.remedy.missing = true
		s.lastError = s.toolMissing()
		s.note(now, s.lastError)
		s.log(slog.LevelWarn, `[broker] upstream "%s": %s`, s.cfg.Slot, s.lastError)
	case s.check.pages < maxPages:
		s.lookUp(now, `{"cursor":`+string(wire.AppendString(nil, list.Next))+`}`)
	}
}

func (s *State) toolMissing() string {
	return s.checkName() + " failed: the tool is not in its tools/list: correct healthCheck.tool"
}
