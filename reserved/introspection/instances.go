package introspection

import (
	"fmt"
	"time"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
)

// An instance is the upstream behind a slot: a provider the broker itself starts
// or dials (spec 06, "What an operator sees").

// HaveInstances tells the server whether the broker keeps upstreams at present:
// the tools and resources about them are offered only then. It is sent after each
// configuration.
type HaveInstances struct{ Have bool }

// ControlMessage implements the marker of actors/rt.
func (*HaveInstances) ControlMessage() {}

func (s *State) haveInstances(m *HaveInstances) {
	if have := m.Have && s.cfg.instances; have != s.upstreams {
		s.upstreams = have
		s.broadcast("notifications/tools/list_changed")
		s.broadcast("notifications/resources/list_changed")
	}
}

func (s *State) broadcast(method string) {
	note := &msg.Notify{Frame: []byte(`{"jsonrpc":"2.0","method":"` + method + `"}`)}
	note.Class, note.Key = mcp.NoteClass([]byte(method), nil)
	for _, member := range s.sessions.All() {
		s.tell(member.Ref, note)
	}
}

// instanceInfo is one upstream as instances_list reports it.
type instanceInfo struct {
	Name          string  `json:"name"`
	Kind          string  `json:"kind"`
	Target        string  `json:"target"`
	Aggregate     bool    `json:"aggregate"`
	Isolated      bool    `json:"isolated"`
	Verdict       string  `json:"verdict"`
	Explanation   string  `json:"explanation"`
	Check         string  `json:"check"`
	PID           *int    `json:"pid"`
	UpSince       *string `json:"upSince"`
	UpForMs       *int64  `json:"upForMs"`
	Restarts      int     `json:"restarts"`
	Sessions      int     `json:"sessions"`
	AttemptCount  int     `json:"attemptCount"`
	LastAttemptAt *string `json:"lastAttemptAt"`
	NextRetryAt   *string `json:"nextRetryAt"`
	NextRetryInMs *int64  `json:"nextRetryInMs"`
	Error         *string `json:"error"`
	Unresolved    bool    `json:"unresolved"`
	Denied        bool    `json:"denied"`
	GaveUp        bool    `json:"gaveUp"`
	CrashLoop     bool    `json:"crashLoop"`

	Cause       string `json:"cause,omitempty"`       // why it is not up: start, ended, checks or slot
	Unremedied  bool   `json:"unremedied,omitempty"`  // it serves, and no new connection helps against its failed checks
	ToolMissing bool   `json:"toolMissing,omitempty"` // the tool of its check is not in its tools/list
}

// instanceStatus is the same with its history, as instance_status reports it.
type instanceStatus struct {
	instanceInfo
	Events []instanceEvent `json:"events"` // oldest first
	Stderr []string        `json:"stderr"`
}

type instanceEvent struct {
	At   string `json:"at"`
	Text string `json:"text"`
}

func describeInstance(now time.Time, i *msg.Instance) instanceInfo {
	info := instanceInfo{
		Name: i.Slot, Kind: i.Kind, Target: i.Target, Aggregate: i.Aggregate, Isolated: i.Isolated,
		Verdict: string(i.Verdict), Explanation: explain(now, i), Check: i.Check,
		UpSince: stamp(i.Since), Restarts: i.Restarts, Sessions: i.Sessions,
		AttemptCount: i.Attempt, LastAttemptAt: stamp(i.LastAttempt), NextRetryAt: stamp(i.NextRetry),
		Unresolved: i.Unresolved, Denied: i.Denied, GaveUp: i.GaveUp, CrashLoop: i.CrashLoop,
		Cause: string(i.Cause), Unremedied: i.Unremedied, ToolMissing: i.ToolMissing,
	}
	if i.PID != 0 {
		info.PID = &i.PID
	}
	if !i.Since.IsZero() {
		age := max(0, now.Sub(i.Since).Milliseconds())
		info.UpForMs = &age
	}
	if !i.NextRetry.IsZero() {
		wait := max(0, i.NextRetry.Sub(now).Milliseconds())
		info.NextRetryInMs = &wait
	}
	if i.Error != "" {
		info.Error = &i.Error
	}
	return info
}

func instanceDetails(now time.Time, i *msg.Instance) instanceStatus {
	status := instanceStatus{describeInstance(now, i), make([]instanceEvent, len(i.Events)), append([]string{}, i.Tail...)}
	for n, e := range i.Events {
		status.Events[n] = instanceEvent{iso(e.At), e.Text}
	}
	return status
}

// stamp is iso, nil for a time that never was.
func stamp(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := iso(t)
	return &text
}

// explain says in words what a verdict means, since the most usual one promises
// less than it seems to.
func explain(now time.Time, i *msg.Instance) string {
	switch {
	case i.Behind:
		return "Its settings were changed: it is started once its old process or connection has ended."
	case i.Isolated && i.Sessions == 0 && (i.Verdict == msg.Live || i.Verdict == msg.Starting):
		return "A process is started for each client session; none runs now."
	case i.Isolated && i.Verdict == msg.Live:
		return fmt.Sprintf("Each client session has a process of its own, and all of them answer %s; nothing checks what is behind them.", i.Check)
	case i.Verdict == msg.Live && i.Check == mcp.Ping:
		return "It answers ping and offers no tools; nothing checks what is behind it."
	case i.Verdict == msg.Live:
		return fmt.Sprintf("It answers %s; nothing checks what is behind it. Set healthCheck.tool to have a real call made.", i.Check)
	}
	watched := i.Kind == msg.KindProvider
	switch i.Verdict {
	case msg.Away:
		return "Nobody holds the slot; its provider comes by itself."
	case msg.Starting:
		if watched {
			return "Its provider has come, and its first check is not finished."
		}
		return "It is being started: its first handshake or its first check is not finished."
	case msg.Healthy:
		return fmt.Sprintf("A real call of %s passed.", i.Check)
	case msg.Degraded:
		return "Its last check failed, not yet as often in a row as healthCheck.failureThreshold."
	case msg.Unhealthy:
		if watched {
			return "As many checks in a row failed as healthCheck.failureThreshold; it comes by itself, so the broker cannot make its connection again."
		}
		if i.Unremedied {
			return "Its checks fail as they did before its connection was made again; it goes on serving, and is not restarted for that until a check has passed."
		}
		if i.GaveUp {
			return explainFailed(now, i)
		}
		if !i.NextRetry.IsZero() {
			return fmt.Sprintf("The broker ended it, since as many checks in a row failed as healthCheck.failureThreshold. It is down; the next attempt is in %s.", until(now, i.NextRetry))
		}
		return "As many checks in a row failed as healthCheck.failureThreshold; its connection is being made again."
	case msg.Failed:
		return explainFailed(now, i)
	case msg.Halted:
		return "The broker is stopping it."
	case msg.Unknown:
		return "The part of the broker that keeps it does not answer: it failed and is started again within seconds. Ask again; the broker's log has the cause."
	}
	return ""
}

// whatHappened is empty where all that is known is that it does not start.
func whatHappened(cause msg.Cause) string {
	switch cause {
	case msg.CauseEnded:
		return "It ended while it served."
	case msg.CauseChecks:
		return "The broker ended it, since its checks failed."
	case msg.CauseSlot:
		return "Another provider holds its slot."
	}
	return ""
}

func explainFailed(now time.Time, i *msg.Instance) string {
	if what := whatHappened(i.Cause); what != "" && !i.GaveUp {
		if i.NextRetry.IsZero() {
			return what + " The next attempt is under way."
		}
		return fmt.Sprintf("%s The next attempt is in %s.", what, until(now, i.NextRetry))
	}
	switch {
	case i.GaveUp:
		return fmt.Sprintf("It was given up after %s in a row (maxRestarts); only a restart by hand helps.", failures(i))
	case !i.NextRetry.IsZero():
		return fmt.Sprintf("It cannot be started: %s in a row. The next one is in %s.", failures(i), until(now, i.NextRetry))
	}
	return fmt.Sprintf("It could not be started: %s in a row. The next one is under way.", failures(i))
}

// until is the time left, in full seconds.
func until(now, due time.Time) time.Duration {
	return max(0, due.Sub(now)+time.Second-1).Truncate(time.Second)
}

func failures(i *msg.Instance) string {
	if i.Attempt == 1 {
		return "1 failed attempt"
	}
	return fmt.Sprintf("%d failed attempts", i.Attempt)
}

type instanceList struct {
	Count     int            `json:"count"`
	Instances []instanceInfo `json:"instances"`
}

func findInstance(all []msg.Instance, slot string) *msg.Instance {
	for i := range all {
		if all[i].Slot == slot {
			return &all[i]
		}
	}
	return nil
}
