package introspection

import (
	"fmt"
	"math"
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
	case i.Isolated && i.Verdict == msg.Live:
		return "Each client session gets a process of its own; this line does not tell how each of them is."
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

func explainFailed(now time.Time, i *msg.Instance) string {
	switch {
	case i.GaveUp:
		return fmt.Sprintf("It was given up after %s in a row (maxRestarts); only a restart by hand helps.", failures(i))
	case !i.NextRetry.IsZero():
		wait := math.Ceil(max(0, i.NextRetry.Sub(now).Seconds()))
		return fmt.Sprintf("It cannot be started: %s in a row. The next one is in %.0f s.", failures(i), wait)
	}
	return fmt.Sprintf("It could not be started: %s in a row. The next one is under way.", failures(i))
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
