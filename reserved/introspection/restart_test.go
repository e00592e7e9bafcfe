package introspection

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpbroker/actors/msg"
)

// Spec 07 row 8: a restart is a success only when the new connection has been
// greeted and has passed its first check. What happens is played behind the
// question, each step after its time.
func TestRestart(t *testing.T) {
	type step struct {
		after time.Duration // since the question
		edit  func(*msg.Instance)
	}
	began := func(i *msg.Instance) {
		i.LastAttempt, i.Verdict, i.Since, i.PID = time.Now(), msg.Starting, time.Time{}, 0
	}
	is := func(v msg.Verdict) func(*msg.Instance) { return func(i *msg.Instance) { i.Verdict = v } }
	tests := []struct {
		name, slot string
		steps      []step
		outcome    string
		message    string
		took       time.Duration
	}{
		{"it comes up", "a/1", []step{{50 * time.Millisecond, began}, {950 * time.Millisecond, is(msg.Live)}}, "up",
			`"a/1" was restarted: initialize and tools/list were answered. It answers tools/list; nothing checks what is behind it. Set healthCheck.tool to have a real call made.`, time.Second},
		{"its old process, of other settings, does not end", "a/1", []step{{0, func(i *msg.Instance) { i.Verdict, i.Behind, i.Isolated = msg.Starting, true, true }}}, "pending",
			`The restart of "a/1" was asked for and is not decided after 15s; its verdict is starting. Its settings were changed: it is started once its old process or connection has ended. The broker goes on by itself: call instance_status with the name "a/1" to follow it.`, 15 * time.Second},
		{"its tool answers", "a/1", []step{{0, began}, {250 * time.Millisecond, func(i *msg.Instance) { i.Verdict, i.Check = msg.Healthy, "ls" }}}, "up",
			`"a/1" was restarted: initialize and ls were answered. A real call of ls passed.`, 300 * time.Millisecond},
		{"the old connection does not count", "a/1", nil, "pending",
			`The restart of "a/1" was asked for and is not decided after 15s; its verdict is live. The broker goes on by itself: call instance_status with the name "a/1" to follow it.`, 15 * time.Second},
		{"it never answers", "a/1", []step{{0, began}}, "pending",
			`The restart of "a/1" was asked for and is not decided after 15s; its verdict is starting. The broker goes on by itself: call instance_status with the name "a/1" to follow it.`, 15 * time.Second},
		{"an attempt has the verdict of the one before", "crm", []step{
			{0, func(i *msg.Instance) { i.LastAttempt, i.NextRetry = time.Now(), time.Time{} }},
			{150 * time.Millisecond, func(i *msg.Instance) {
				i.Attempt, i.Error, i.NextRetry = 4, "connection refused", time.Now().Add(30*time.Second)
			}},
		}, "failed", `"crm" was restarted and does not work: connection refused. It cannot be started: 4 failed attempts in a row. The next one is in 30s.`, 200 * time.Millisecond},
		{"it is given up", "crm", []step{{0, func(i *msg.Instance) {
			i.LastAttempt, i.NextRetry, i.GaveUp, i.Attempt, i.Error = time.Now(), time.Time{}, true, 4, "exited with code 1"
		}}}, "failed", `"crm" was restarted and does not work: exited with code 1. It was given up after 4 failed attempts in a row (maxRestarts); only a restart by hand helps.`, 0},
		{"its first check fails", "a/1", []step{{0, began}, {100 * time.Millisecond, func(i *msg.Instance) {
			i.Verdict, i.Error = msg.Degraded, "Readiness check (ls) failed: no token"
		}}}, "failed", `"a/1" was restarted and does not work: Readiness check (ls) failed: no token. Its last check failed, not yet as often in a row as healthCheck.failureThreshold.`, 100 * time.Millisecond},
		{"it is one with a restart just before", "a/1", []step{{0, func(i *msg.Instance) {
			i.LastAttempt, i.ByHand, i.Verdict = time.Now().Add(-time.Minute), true, msg.Starting
		}}, {100 * time.Millisecond, is(msg.Live)}}, "up",
			`"a/1" was restarted: initialize and tools/list were answered. It answers tools/list; nothing checks what is behind it. Set healthCheck.tool to have a real call made.`, 100 * time.Millisecond},
		{"one process for each session", "a/1", []step{{0, func(i *msg.Instance) { i.Isolated, i.LastAttempt = true, time.Time{} }}}, "asked",
			`Each client session of "a/1" has a process of its own. All of them were told to restart; call its tools in a session to see what came of it.`, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, f := withUpstreams(t)
				w.a.clock = time.Now
				var asked time.Time
				steps := tt.steps
				w.a.restart = func(_ context.Context, slot string) error {
					asked = time.Now()
					f.restarts = append(f.restarts, slot)
					return nil
				}
				w.a.instances = func(context.Context) ([]msg.Instance, error) {
					for len(steps) > 0 && !asked.IsZero() && time.Since(asked) >= steps[0].after {
						steps[0].edit(f.find(tt.slot))
						steps = steps[1:]
					}
					return append([]msg.Instance(nil), f.list...), nil
				}
				f.find("a/1").LastAttempt = time.Now().Add(-time.Minute)
				f.find("crm").LastAttempt = time.Now().Add(-time.Minute)
				got := w.answer(call("instance_restart", `{"name":"`+tt.slot+`"}`))
				want := fmt.Sprintf(`"structuredContent":{"name":%q,"outcome":%q,"message":%s,"waitedMs":%d,"instance":{"name":%q,`,
					tt.slot, tt.outcome, jsonText(tt.message), tt.took.Milliseconds(), tt.slot)
				if !strings.Contains(got, want) {
					t.Errorf("got  %s\nwant %s", got, want)
				}
				if !strings.HasSuffix(got, fmt.Sprintf(`"isError":%t}}`, tt.outcome == "failed")) {
					t.Errorf("isError: %s", got)
				}
				if len(f.restarts) != 1 || f.restarts[0] != tt.slot {
					t.Errorf("restarted %q", f.restarts)
				}
			})
		})
	}
}

// What cannot be asked for, and an upstream that leaves meanwhile, are no success
// either.
func TestRestartOfNothing(t *testing.T) {
	w, f := withUpstreams(t)
	f.refusal = errors.New("the broker stops")
	w.answers(call("instance_restart", `{"name":"crm"}`), says(`The restart of "crm" could not be asked for: the broker stops.`, true))
	f.refusal = nil
	w.a.restart = func(context.Context, string) error { f.list = nil; return nil }
	w.answers(call("instance_restart", `{"name":"crm"}`),
		says(`The restart of "crm" was asked for, but the upstream is gone: it was taken out of the configuration, or the broker stops.`, true))
}
