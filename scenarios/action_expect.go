package scenarios

import (
	"fmt"
	"strings"
)

type expectOpen struct {
	ID     string `step:"expect_open,required"`
	Within span   `step:"within"`
}

func (a *expectOpen) check(c *checker) { c.use(namePeer, "expect_open", a.ID) }

func (a *expectOpen) run(r *runner) error {
	return r.opened(r.peers[a.ID], a.Within)
}

type expectRefusal struct {
	ID       string `step:"expect_refusal,required"`
	Code     int    `step:"code,required"`
	Contains words  `step:"contains"`
	Within   span   `step:"within"`
}

func (a *expectRefusal) check(c *checker) { c.use(namePeer, "expect_refusal", a.ID) }

func (a *expectRefusal) run(r *runner) error {
	want := fmt.Sprintf("refused %d containing %q", a.Code, a.Contains)
	return r.nextEvent(a.ID, &r.peers[a.ID].events, a.Within, want, func(e event) bool {
		return e.kind == eventRefused && e.code == a.Code && containsAll(e.text, a.Contains)
	})
}

type expectState struct {
	ID    string `step:"expect_state,required"`
	State string `step:"state,required"`
}

func (a *expectState) check(c *checker) {
	c.use(namePeer, "expect_state", a.ID)
	c.oneOf("state", a.State, string(eventOpen), string(eventClosed))
}

func (a *expectState) run(r *runner) error {
	state := eventClosed
	// A refusal concerns a slot: the tunnel it came through is open.
	if kind := r.peers[a.ID].events.last().kind; kind == eventOpen || kind == eventRefused {
		state = eventOpen
	}
	if string(state) != a.State {
		return unmet(a.ID+": "+a.State, r.peers[a.ID].events.last().String())
	}
	return nil
}

type expectLog struct {
	Parts  words  `step:"expect_log,required"`
	Since  string `step:"since"`
	Within span   `step:"within"`
}

func (a *expectLog) check(c *checker) {
	c.needBroker("expect_log")
	checkSince(c, a.Since)
}

func checkSince(c *checker, since string) {
	if since != "" {
		c.oneOf("since", since, "step", "start")
	}
}

func (a *expectLog) run(r *runner) error {
	ctx, cancel := r.within(a.Within)
	defer cancel()
	_, err := r.log.find(ctx, r.since(a.Since), func(line string) bool { return containsAll(line, a.Parts) })
	if err != nil {
		return missed(ctx, fmt.Sprintf("a log line with %q", a.Parts))
	}
	return nil
}

type expectNoLog struct {
	Parts words  `step:"expect_no_log,required"`
	Since string `step:"since"`
}

func (a *expectNoLog) check(c *checker) {
	c.needBroker("expect_no_log")
	checkSince(c, a.Since)
}

func (a *expectNoLog) run(r *runner) error {
	for _, line := range r.log.from(r.since(a.Since)) {
		if containsAll(line, a.Parts) {
			return unmet(fmt.Sprintf("no log line with %q", a.Parts), line)
		}
	}
	return nil
}

// since is the index of the first log line an expectation looks at: the lines of
// the last step that did something, or all of them.
func (r *runner) since(since string) int {
	if since == "start" {
		return 0
	}
	return r.mark
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}
