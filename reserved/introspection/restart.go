package introspection

import (
	"fmt"
	"time"

	"mcpbroker/actors/msg"
)

// A restart is reported as a success only when the new connection was greeted and
// passed its first check (spec 07 row 8). What has not been decided in time is
// reported as undecided.

const (
	restartPatience = 15 * time.Second
	restartLook     = 100 * time.Millisecond // between two looks at it
)

// outcome of a restart.
type outcome string

const (
	outcomeUp      outcome = "up"      // initialize was answered and the first check passed
	outcomeFailed  outcome = "failed"  // the attempt failed, or its first check did
	outcomePending outcome = "pending" // not decided in time
	outcomeAsked   outcome = "asked"   // the connections of an isolated upstream are not followed
)

// restartInfo is the object of instance_restart.
type restartInfo struct {
	Name     string         `json:"name"`
	Outcome  outcome        `json:"outcome"`
	Message  string         `json:"message"`
	WaitedMs int64          `json:"waitedMs"`
	Instance instanceStatus `json:"instance"`
}

// judgeRestart tells what came of a restart that was asked for at this time. A
// connection made before says nothing: it is still on its way out. One that a
// restart by hand has made is what was asked for, whoever asked first.
func judgeRestart(i *msg.Instance, asked time.Time) outcome {
	switch {
	case i.Behind:
		return outcomePending
	case i.Isolated:
		return outcomeAsked
	case i.LastAttempt.Before(asked) && !i.ByHand:
		return outcomePending
	}
	switch i.Verdict {
	case msg.Live, msg.Healthy:
		return outcomeUp
	case msg.Degraded, msg.Unhealthy:
		return outcomeFailed
	case msg.Failed:
		// While an attempt is under way it has the verdict of the one before.
		if i.GaveUp || !i.NextRetry.IsZero() {
			return outcomeFailed
		}
	}
	return outcomePending
}

func tellOutcome(now time.Time, result outcome, i *msg.Instance) string {
	name := quote(i.Slot)
	switch result {
	case outcomeUp:
		return fmt.Sprintf("%s was restarted: initialize and %s were answered. %s", name, i.Check, explain(now, i))
	case outcomeFailed:
		return fmt.Sprintf("%s was restarted and does not work: %s. %s", name, i.Error, explain(now, i))
	case outcomeAsked:
		return fmt.Sprintf("Each client session of %s has a process of its own. All of them were told to restart; call its tools in a session to see what came of it.", name)
	}
	why := ""
	if i.Behind {
		why = " " + explain(now, i)
	}
	return fmt.Sprintf("The restart of %s was asked for and is not decided after %s; its verdict is %s.%s The broker goes on by itself: call instance_status with the name %s to follow it.",
		name, restartPatience, i.Verdict, why, name)
}
