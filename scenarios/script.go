package scenarios

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// script is a scenario that has passed every check.
type script struct {
	name    string // without folder and extension
	file    string // as problems and verdicts show it
	title   string
	summary string
	teaches string
	port    int
	beat    time.Duration
	steps   []step

	configs  []placedConfig
	programs []placedProgram
}

type step struct {
	line     int
	say      string
	action   action
	observes bool // does nothing but look: keeps the mark of expect_log
}

// placedConfig is the configuration of a broker that some step starts.
type placedConfig struct {
	line  int
	table map[string]any
}

// action is what one step does. Its exported fields are the step's keys.
type action interface {
	// check reports what is wrong with the step, given the steps before it.
	check(c *checker)
	// run returns nil when the step went as the script says.
	run(r *runner) error
}

// Problem is one mistake in a script.
type Problem struct {
	File    string
	Line    int // from 1; 0 when the file could not be read
	Message string
}

// String is the problem on one line, as file:line: message.
func (p Problem) String() string {
	if p.Line == 0 {
		return p.File + ": " + p.Message
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Message)
}

// RefusedError holds every mistake found in the scripts. Nothing was started.
type RefusedError struct{ Problems []Problem }

// Error has one line for each problem.
func (e *RefusedError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Defaults of the variables every script has.
const (
	defaultPort      = 3300
	defaultHeartbeat = 5000 // milliseconds
	defaultBroker    = "broker"
)

// parse reads a script. set overrides the variables every script has.
func parse(file, name, text string, set map[string]any) (*script, []Problem) {
	var doc map[string]any
	if _, err := toml.Decode(text, &doc); err != nil {
		var syntax toml.ParseError
		if errors.As(err, &syntax) {
			// The library has no line for a few errors.
			return nil, []Problem{{file, max(syntax.Position.Line, 1), syntax.Message}}
		}
		return nil, []Problem{{file, 1, err.Error()}}
	}
	c := newChecker(file, locate(text))
	s := &script{name: name, file: file}
	c.vars = c.variables(doc["vars"], set)
	s.port, s.beat = int(c.number("port", 65535)), time.Duration(c.number("heartbeat", 1<<31-1))*time.Millisecond
	c.beat = s.beat
	c.topLevel(s, doc)
	for i, table := range c.tables(doc["step"]) {
		c.enter(i)
		if st, ok := c.step(table); ok {
			s.steps = append(s.steps, st)
		}
	}
	s.configs, s.programs = c.configs, c.programs
	slices.SortStableFunc(c.problems, func(a, b Problem) int { return a.Line - b.Line })
	return s, c.problems
}

func (c *checker) topLevel(s *script, doc map[string]any) {
	texts := map[string]*string{"title": &s.title, "summary": &s.summary, "teaches": &s.teaches}
	for _, key := range slices.Sorted(maps.Keys(doc)) {
		line := c.places.top[key]
		value := doc[key]
		switch into, isText := texts[key]; {
		case isText:
			text, ok := c.expand(line, value).(string)
			if !ok {
				c.report(line, "%q must be a string, not %s", key, kindOf(value))
			}
			*into = text
		case key == "vars" || key == "step":
		default:
			c.report(max(line, 1), "unknown key %q (known: title, summary, teaches, [vars], [[step]])", key)
		}
	}
	if _, ok := doc["title"]; !ok {
		c.report(1, "a script needs a title")
	}
}

// tables returns the steps.
func (c *checker) tables(value any) []map[string]any {
	switch list := value.(type) {
	case []map[string]any:
		return list
	case nil:
		c.report(1, "a script needs at least one [[step]]")
	default:
		c.report(c.places.step(0).line, "steps are written as [[step]]")
	}
	return nil
}

// step decodes and checks one step.
func (c *checker) step(table map[string]any) (step, bool) {
	st := step{line: c.here.line}
	before := len(c.problems)
	table = c.expandStep(table)
	if say, ok := table["say"]; ok {
		if st.say, ok = say.(string); !ok {
			c.fail("say", `"say" must be a string, not %s`, kindOf(say))
		}
		delete(table, "say")
	}
	kind, ok := c.kindOf(table)
	if !ok {
		return st, false
	}
	st.action, st.observes = kind.blank(), kind.observes
	if len(c.problems) == before {
		c.decode(kind.name, table, st.action)
	}
	if len(c.problems) == before {
		st.action.check(c)
	} else {
		c.declareAnyway(kind.name, table)
	}
	return st, true
}

// kindOf finds the one action of a step.
func (c *checker) kindOf(table map[string]any) (actionKind, bool) {
	var found []actionKind
	for _, k := range actionKinds() {
		if _, ok := table[k.name]; ok {
			found = append(found, k)
		}
	}
	switch len(found) {
	case 1:
		return found[0], true
	case 0:
		var names []string
		for _, k := range actionKinds() {
			names = append(names, k.name)
		}
		c.fail("", "a step needs one action: %s", strings.Join(names, ", "))
	default:
		slices.SortFunc(found, func(a, b actionKind) int { return c.here.at(a.name) - c.here.at(b.name) })
		c.fail(found[1].name, "two actions in one step: %q and %q", found[0].name, found[1].name)
		for _, k := range found {
			c.declareAnyway(k.name, table)
		}
	}
	return actionKind{}, false
}
