package diagnosis

import (
	"fmt"
	"iter"
	"strings"

	"mcpbroker/actors/msg"
)

// Rules about providers the broker itself starts or dials (spec 06). One that is
// down is spoken of by the rule that knows why, else by upstreamFailed.

// upstreams yields those asked about that a rule applies to.
func (d *diagnosis) upstreams(applies func(*msg.Instance) bool) iter.Seq[*msg.Instance] {
	return func(yield func(*msg.Instance) bool) {
		for n := range d.Instances {
			if i := &d.Instances[n]; d.about(i.Slot) && applies(i) && !yield(i) {
				return
			}
		}
	}
}

// managed reports a slot that an upstream fills.
func (d *diagnosis) managed(slot string) bool { return d.instance(slot) != nil }

func (d *diagnosis) instance(slot string) *msg.Instance { return d.behind[slot] }

// starting reports a slot whose upstream is connected to it and has not answered
// initialize yet. Calls of clients are held back meanwhile.
func (d *diagnosis) starting(s *Slot) bool {
	i := d.instance(s.Name)
	return i != nil && !i.Isolated && s.Connected && i.Since.IsZero()
}

// isProcess: it is a child, and no remote server.
func isProcess(i *msg.Instance) bool { return i.Kind == "stdio" || i.Kind == "bundle" }

// takenOver ends a sentence about an entry of the configuration.
const takenOver = "a running broker takes changes of its upstreams over by itself"

// entry names its table in the configuration.
func entry(i *msg.Instance) string {
	list := "mcpServers"
	switch i.Kind {
	case "stdio":
		list = "stdioUpstreams"
	case "bundle":
		list = "mcpbBundles"
	}
	return fmt.Sprintf("the entry of [[%s]] with name = %s", list, quote(i.Slot))
}

// command is a command line about a slot.
func command(words, slot string) string {
	return fmt.Sprintf("'broker %s %s'", words, argument(slot))
}

// argument spells a name as a shell takes it.
func argument(name string) string {
	if name != "" && !strings.ContainsFunc(name, special) {
		return name
	}
	return quote(name)
}

func special(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_./", r)
}

// trouble is the evidence of one that is down.
func (d *diagnosis) trouble(i *msg.Instance) Evidence {
	e := Evidence{
		{"verdict", string(i.Verdict)}, {"error", i.Error}, {"attemptCount", i.Attempt},
		{"lastAttemptAt", stamp{i.LastAttempt}.text()}, {"nextRetryAt", stamp{i.NextRetry}.text()}, {"restarts", i.Restarts},
		{"kind", i.Kind}, {"target", i.Target},
	}
	if line, ok := lastLine(i); ok {
		e = append(e, Field{"lastStderrLine", line})
	}
	return e
}

// lastLine is the last one on standard error: the tail has what the broker put between
// two processes, too, and what came on standard output.
func lastLine(i *msg.Instance) (line string, ok bool) {
	for n := len(i.Tail) - 1; n >= 0; n-- {
		if line := i.Tail[n]; !strings.HasPrefix(line, "--- process") && !strings.HasPrefix(line, "stdout: ") {
			return line, true
		}
	}
	return "", false
}

// attempts says how often it was tried and when it is again.
func (d *diagnosis) attempts(i *msg.Instance) string {
	tried, next := count(i.Attempt, "attempt")+" in a row failed, and ", "the next one"
	if i.Cause != "" && i.Cause != msg.CauseStart && i.Attempt <= 1 {
		tried, next = "", "the next attempt" // it had been started
	}
	switch {
	case i.GaveUp:
		return tried + "there will be no further attempt"
	case i.NextRetry.IsZero():
		return tried + next + " is under way"
	}
	return fmt.Sprintf("%s%s is in %s", tried, next, span(max(0, i.NextRetry.Sub(d.Now).Milliseconds())))
}

func secretMissing(d *diagnosis) (found []Problem) {
	for i := range d.upstreams(func(i *msg.Instance) bool { return i.Verdict == msg.Failed && i.Unresolved }) {
		found = append(found, Problem{
			ID: "upstream-secret-missing", Severity: Error, Slot: i.Slot,
			Symptom:  fmt.Sprintf("Upstream %s is not started, since one of its settings cannot be resolved: %s; %s.", quote(i.Slot), i.Error, d.attempts(i)),
			Evidence: d.trouble(i),
			Fix: fmt.Sprintf("The error names the setting and what it lacks. A variable: set it in the environment of the broker and restart the broker, "+
				"or, in %s of broker.toml, give it under vars or write a default as in ${NAME:-default} (${NAME:-} is empty); "+takenOver+". "+
				"A file: create it where the error says, readable by the user the broker runs as, then run %s. Nothing was started in its place, and other slots are not affected.",
				entry(i), command("restart", i.Slot)),
		})
	}
	return found
}

func authRefused(d *diagnosis) (found []Problem) {
	for i := range d.upstreams(func(i *msg.Instance) bool { return i.Verdict == msg.Failed && i.Denied }) {
		found = append(found, Problem{
			ID: "remote-auth-refused", Severity: Error, Slot: i.Slot,
			Symptom:  fmt.Sprintf("The server behind upstream %s refuses the broker's credentials: %s; %s.", quote(i.Slot), i.Error, d.attempts(i)),
			Evidence: d.trouble(i),
			Fix: fmt.Sprintf("Give the broker valid credentials for %s. In %s of broker.toml that is a token, headers = { Authorization = \"Bearer ${NAME}\" }, "+
				"or a client, oauth = { tokenUrl = \"https://...\", clientId = \"...\", clientSecret = \"${NAME}\" }; set NAME in the environment of the broker and restart the broker; any other change is simpler: "+takenOver+". "+
				"A secret written as ${file:PATH} is read again at each attempt: replace the file and run %s. The tokens of the broker's own clients are never passed on.",
				i.Target, entry(i), command("restart", i.Slot)),
		})
	}
	return found
}

func crashLoop(d *diagnosis) (found []Problem) {
	for i := range d.upstreams(func(i *msg.Instance) bool { return i.CrashLoop }) {
		severity, state := Warning, "It is up at present, and has not stayed up long enough to have proved itself"
		if i.Verdict == msg.Failed || !i.NextRetry.IsZero() {
			severity, state = Error, "It is down: "+d.attempts(i)
		}
		found = append(found, Problem{
			ID: "upstream-crash-loop", Severity: severity, Slot: i.Slot,
			Symptom: fmt.Sprintf("Upstream %s answers the handshake and ends soon after, again and again; it was started %s. %s.%s",
				quote(i.Slot), count(i.Restarts+1, "time"), state, lastWords(i)),
			Evidence: d.trouble(i), Fix: whyItEnds(i),
		})
	}
	return found
}

// lastWords quotes what is known of the end of an upstream.
func lastWords(i *msg.Instance) string {
	if line, ok := lastLine(i); ok {
		return " The last line of its standard error: " + line
	}
	if i.Error != "" {
		return " The last error: " + i.Error + "."
	}
	return ""
}

// whyItEnds says how to find out.
func whyItEnds(i *msg.Instance) string {
	again := fmt.Sprintf(" Once the cause is removed, run %s: it tries at once, whatever the schedule.", command("restart", i.Slot))
	const environment = "A child gets a small environment: what it needs of the broker's is named in inheritEnv or set in env, in %s of broker.toml; " + takenOver + "."
	switch i.Kind {
	case "stdio":
		return fmt.Sprintf("Run %s for the last lines it wrote to standard error, and start its command line in a shell to see what it does: %s. "+
			environment, command("logs", i.Slot), i.Target, entry(i)) + again
	case "bundle":
		return fmt.Sprintf("Run %s for the last lines it wrote to standard error. "+environment, command("logs", i.Slot), entry(i)) + again
	}
	return fmt.Sprintf("See that the server at %s runs and can be reached from this machine, and read its own log; a proxy or firewall in between may refuse or end connections. "+
		"An address that has changed is set as url in %s of broker.toml; "+takenOver+".", i.Target, entry(i)) + again
}

func gaveUp(d *diagnosis) (found []Problem) {
	for i := range d.upstreams(func(i *msg.Instance) bool { return i.GaveUp }) {
		found = append(found, Problem{
			ID: "upstream-gave-up", Severity: Error, Slot: i.Slot,
			Symptom:  fmt.Sprintf("Upstream %s was given up: %s (maxRestarts). The last error: %s.%s", quote(i.Slot), d.attempts(i), i.Error, stderrLine(i)),
			Evidence: d.trouble(i),
			Fix:      d.fixOf(i) + fmt.Sprintf(" Nothing else starts it again. To have it tried for ever, take maxRestarts out of %s of broker.toml; "+takenOver+".", entry(i)),
		})
	}
	return found
}

// stderrLine quotes what the error does not.
func stderrLine(i *msg.Instance) string {
	if line, ok := lastLine(i); !ok || strings.Contains(i.Error, line) {
		return ""
	}
	return lastWords(i)
}

// upstreamFailed: it cannot be started, and no other rule knows more.
func upstreamFailed(d *diagnosis) (found []Problem) {
	for i := range d.upstreams(func(i *msg.Instance) bool {
		return i.Verdict == msg.Failed && !i.Unresolved && !i.Denied && !i.CrashLoop && !i.GaveUp && i.Cause != msg.CauseChecks
	}) {
		found = append(found, Problem{
			ID: "upstream-failed", Severity: Error, Slot: i.Slot,
			Symptom:  fmt.Sprintf("Upstream %s %s: %s; %s.%s", quote(i.Slot), down(i), i.Error, d.attempts(i), stderrLine(i)),
			Evidence: d.trouble(i), Fix: d.fixOf(i),
		})
	}
	return found
}

// down begins to say why.
func down(i *msg.Instance) string {
	switch i.Cause {
	case msg.CauseEnded:
		return "ended while it served, and is down"
	case msg.CauseSlot:
		return "is not started, since its slot is taken"
	}
	return "is down"
}

// unhealthy: its checks fail. One the broker has ended for that is no crash.
func unhealthy(d *diagnosis) (found []Problem) {
	for i := range d.upstreams(func(i *msg.Instance) bool {
		return !i.GaveUp && (i.Verdict == msg.Unhealthy || i.Verdict == msg.Degraded || i.Verdict == msg.Failed && i.Cause == msg.CauseChecks)
	}) {
		severity, what := Error, "is connected and unhealthy: as many checks in a row failed as healthCheck.failureThreshold, and its connection is being made again"
		switch {
		case i.Verdict == msg.Degraded:
			severity, what = Warning, "is connected and degraded: its last check failed"
		case i.Verdict == msg.Failed, !i.NextRetry.IsZero():
			what = "was ended by the broker, since its checks failed, and is down; " + d.attempts(i)
		case i.Unremedied:
			what = "is connected and unhealthy: its checks fail as they did before its connection was made again, so it goes on serving and is not restarted for that"
		}
		found = append(found, Problem{
			ID: "upstream-unhealthy", Severity: severity, Slot: i.Slot,
			Symptom:  fmt.Sprintf("Upstream %s %s. %s.", quote(i.Slot), what, i.Error),
			Evidence: append(Evidence{{"check", i.Check}}, d.trouble(i)...),
			Fix:      d.checkByHand(i),
		})
	}
	return found
}

func (d *diagnosis) checkByHand(i *msg.Instance) string {
	if i.ToolMissing {
		return fmt.Sprintf("The server has no tool %s: names are case-sensitive, and those it has are listed by %s. Correct healthCheck.tool in %s of broker.toml, or take it out; %s. The server itself may be in order, and its calls are served.",
			quote(i.Check), command("tools", i.Slot), entry(i), takenOver)
	}
	where := fmt.Sprintf("Run %s for what it writes to standard error. ", command("logs", i.Slot))
	if !isProcess(i) {
		where = fmt.Sprintf("Read the log of the server at %s. ", i.Target)
	}
	if i.Check == "tools/list" || i.Check == "ping" {
		return where + fmt.Sprintf("The check is %s: run %s to see the answer. A server that needs longer gets healthCheck.timeoutSeconds in %s of broker.toml; "+takenOver+".",
			i.Check, command("tools", i.Slot), entry(i))
	}
	return where + fmt.Sprintf("The check calls its tool %s: run 'broker call %s %s' to see the answer, with the arguments of healthCheck.args. "+
		"If the tool needs other arguments or more time, set healthCheck.args or healthCheck.timeoutSeconds in %s of broker.toml; "+takenOver+". Choose a tool that only reads.",
		quote(i.Check), argument(i.Slot), argument(i.Check), entry(i))
}

// liveOnly: an admission, not a warning. A server without tools has none to be
// checked with.
func liveOnly(d *diagnosis) (found []Problem) {
	for i := range d.upstreams(func(i *msg.Instance) bool { return i.Verdict == msg.Live && !i.Isolated && i.Check != "ping" }) {
		found = append(found, Problem{
			ID: "upstream-live-only", Severity: Info, Slot: i.Slot,
			Symptom: fmt.Sprintf("Upstream %s is live, which says no more than that it answers %s: a server without its credentials does so, too, and fails at every call.",
				quote(i.Slot), i.Check),
			Evidence: Evidence{{"verdict", string(i.Verdict)}, {"check", i.Check}, {"kind", i.Kind}},
			Fix: fmt.Sprintf("Name a tool whose call shows that it works: healthCheck = { tool = \"TOOL\", args = {} } in %s of broker.toml; "+takenOver+". "+
				"Run %s for its tools, and take one that only reads and reaches what is behind the server; the verdict is then healthy or unhealthy.",
				entry(i), command("tools", i.Slot)),
		})
	}
	return found
}

// upstreamNotResponding: it has not said a word since it connected. Of one that has,
// slowProvider speaks.
func upstreamNotResponding(d *diagnosis) (found []Problem) {
	for s := range d.inScope {
		if !d.waiting(s) || s.Transport != msg.Upstream || s.Answered {
			continue
		}
		found = append(found, Problem{
			ID: "upstream-not-responding", Severity: Warning, Slot: s.Name,
			Symptom: fmt.Sprintf("The upstream of slot %s has been connected for %s and has not sent a JSON-RPC message, with %s in flight, the oldest for %s.",
				quote(s.Name), d.age(s.ConnectedSince), count(s.PendingCount, "request"), d.age(s.OldestPending)),
			Evidence: append(Evidence{
				{"transport", s.Transport}, {"pendingCount", s.PendingCount}, {"providerRequestTimeoutMs", d.RequestTimeoutMs},
			}, d.silence(s)...),
			Fix: d.lookInto(s),
		})
	}
	return found
}

// lookInto says how to find out what keeps an upstream, and what ends its requests.
func (d *diagnosis) lookInto(s *Slot) string {
	look := fmt.Sprintf("For a child process run %s, which has the last lines of its standard error; for a remote server see that its URL answers with JSON-RPC and not with a page. ", command("logs", s.Name))
	if i := d.instance(s.Name); i != nil && isProcess(i) {
		look = fmt.Sprintf("Run %s for the last lines of its standard error. ", command("logs", i.Slot))
	} else if i != nil {
		look = fmt.Sprintf("See that %s answers with JSON-RPC and not with a page, and read that server's log. ", i.Target)
	}
	return look + fmt.Sprintf("%s makes its connection again; requests in flight then fail at once. ", command("restart", s.Name)) + d.deadline()
}
