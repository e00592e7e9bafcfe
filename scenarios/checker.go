package scenarios

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// checker finds the mistakes of a script without running it: it walks the steps
// and knows which names each of them may use.
type checker struct {
	file     string
	places   *places
	problems []Problem

	vars map[string]any // string or int64
	beat time.Duration
	here stepPlaces // of the step being checked

	started   bool // some step has started a broker
	running   bool // and no later one has ended it
	embedded  bool
	names     map[nameKind]map[string]bool
	sessions  map[string]string // transports of the sessions
	loopbacks map[string]bool   // providers without a socket
	hosted    string            // slot behind the broker's standard input and output
	upstreams map[string]bool   // slots whose processes the broker starts
	configs   []placedConfig
	programs  []placedProgram
}

// nameKind is what a name stands for; each kind has names of its own.
type nameKind string

const (
	namePeer    nameKind = "peer"
	nameClient  nameKind = "session"
	nameCall    nameKind = "call"
	nameRequest nameKind = "request"
	nameProgram nameKind = "program"
)

// introducedBy tells which key introduces names of a kind.
func (k nameKind) introducedBy() string {
	switch k {
	case namePeer:
		return `"connect"`
	case nameClient:
		return `"session"`
	case nameCall:
		return `a "call" or a "session" with "as"`
	case nameRequest:
		return `a "receive" with "as"`
	case nameProgram:
		return `"program"`
	}
	return string(k)
}

func newChecker(file string, p *places) *checker {
	return &checker{
		file: file, places: p,
		sessions: map[string]string{}, loopbacks: map[string]bool{}, upstreams: map[string]bool{},
		names: map[nameKind]map[string]bool{namePeer: {}, nameClient: {}, nameCall: {}, nameRequest: {}, nameProgram: {}},
	}
}

func (c *checker) enter(i int) { c.here = c.places.step(i) }

func (c *checker) report(line int, format string, args ...any) {
	c.problems = append(c.problems, Problem{c.file, line, fmt.Sprintf(format, args...)})
}

// fail reports a problem of the present step, at the line of its key.
func (c *checker) fail(key, format string, args ...any) { c.report(c.here.at(key), format, args...) }

// use checks that an earlier step has introduced name.
func (c *checker) use(kind nameKind, key, name string) {
	if !c.names[kind][name] {
		c.fail(key, "unknown %s %q: no earlier step introduces it with %s", kind, name, kind.introducedBy())
	}
}

// declare introduces name.
func (c *checker) declare(kind nameKind, name string) { c.names[kind][name] = true }

// declareSession introduces the name of a session.
func (c *checker) declareSession(a *sessionAction) {
	if c.names[namePeer][a.ID] {
		c.fail("session", "%q is a provider already: use another name", a.ID)
	}
	if a.Transport == "stdio" && c.hosted != "" && a.Slot != c.hosted {
		c.fail("slot", "the broker's standard input and output lead to slot %q (%s)", c.hosted, stdioKey)
	}
	c.declare(nameClient, a.ID)
	c.sessions[a.ID] = a.Transport
}

// closeSession: with its standard input the broker ends.
func (c *checker) closeSession(id string) {
	if c.sessions[id] == "stdio" && c.hosted != "" {
		c.running = false
	}
}

// useEnd checks that an earlier step has introduced a provider or a session of
// this name, and reports which.
func (c *checker) useEnd(key, name string) (session bool) {
	if c.names[nameClient][name] {
		return true
	}
	if !c.names[namePeer][name] {
		c.fail(key, `unknown provider or session %q: no earlier step introduces it with "connect" or "session"`, name)
	}
	return false
}

// useSocket is useEnd for what only a socket has.
func (c *checker) useSocket(key, name string) {
	if c.useEnd(key, name) && c.sessions[name] != "ws" {
		c.fail(key, `%q is for providers and for sessions with transport = "ws"`, key)
	}
}

// declareAnyway introduces the names of a step that was refused, so that one
// mistake is reported once.
func (c *checker) declareAnyway(action string, table map[string]any) {
	text := func(key string) string { s, _ := table[key].(string); return s }
	switch action {
	case "broker":
		what := text("broker")
		c.started, c.running = true, what != "stop" && what != "kill"
		c.embedded = c.embedded || table["embedded"] == true
	case "connect":
		c.declare(namePeer, text("connect"))
	case "session":
		c.declare(nameClient, text("session"))
		c.sessions[text("session")] = text("transport")
		c.declare(nameCall, text("as"))
	case "call":
		c.declare(nameCall, text("as"))
	case "receive":
		c.declare(nameRequest, text("as"))
	case "program":
		c.declare(nameProgram, text("program"))
	}
}

// needBroker checks that an earlier step has started a broker.
func (c *checker) needBroker(key string) {
	if !c.started {
		c.fail(key, `no earlier step starts a broker (broker = "start")`)
	}
}

// needEmbedded checks that the broker lives in the runner's process.
func (c *checker) needEmbedded(key string) {
	if !c.embedded {
		c.fail(key, "%q needs a broker in the runner's process (broker = \"start\", embedded = true)", key)
	}
}

func (c *checker) oneOf(key, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		c.fail(key, `"%s" must be one of "%s", not %q`, key, strings.Join(allowed, `", "`), value)
	}
}

// variables takes [vars] and what the caller sets.
func (c *checker) variables(value any, set map[string]any) map[string]any {
	vars := map[string]any{"port": int64(defaultPort), "heartbeat": int64(defaultHeartbeat), "broker": defaultBroker, "next_port": int64(0)}
	table, ok := value.(map[string]any)
	if value != nil && !ok {
		c.report(max(c.places.top["vars"], 1), "[vars] must be a table, not %s", kindOf(value))
	}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		v := table[name]
		_, isText := v.(string)
		_, isNumber := v.(int64)
		_, own := vars[name]
		switch {
		case name == "broker" || name == "next_port":
			c.report(c.places.vars[name], "variable %q is set by the runner", name)
		case own && !isNumber:
			c.report(c.places.vars[name], "variable %q must be an integer, not %s", name, kindOf(v))
		case !isText && !isNumber:
			c.report(c.places.vars[name], "variable %q must be a string or an integer, not %s", name, kindOf(v))
		default:
			vars[name] = v
		}
	}
	maps.Copy(vars, set)
	if port, ok := vars["port"].(int64); ok {
		vars["next_port"] = port + 1
	}
	return vars
}

// number is a variable that must be an integer from 0 to most.
func (c *checker) number(name string, most int64) int64 {
	v, ok := c.vars[name].(int64)
	if !ok || v < 0 || v > most {
		c.report(max(c.places.vars[name], 1), "variable %q must be an integer from 0 to %d", name, most)
	}
	return v
}

var reference = regexp.MustCompile(`\$?\$\{([^}]*)\}`)

// expand replaces ${name} in strings. A string that is one reference takes the
// type of the variable. $${ stands for ${ as it is.
func (c *checker) expand(line int, value any) any {
	switch v := value.(type) {
	case string:
		if m := reference.FindStringSubmatch(v); m != nil && m[0] == v && v[1] != '$' {
			return c.variable(line, m[1])
		}
		return reference.ReplaceAllStringFunc(v, func(ref string) string {
			if ref[1] == '$' {
				return ref[1:]
			}
			return fmt.Sprint(c.variable(line, ref[2:len(ref)-1]))
		})
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = c.expand(line, v[i])
		}
		return list
	case []map[string]any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = c.expand(line, v[i])
		}
		return list
	case map[string]any:
		table := make(map[string]any, len(v))
		for key := range v {
			table[key] = c.expand(line, v[key])
		}
		return table
	}
	return value
}

func (c *checker) expandStep(table map[string]any) map[string]any {
	out := make(map[string]any, len(table))
	for _, key := range slices.Sorted(maps.Keys(table)) {
		out[key] = c.expand(c.here.at(key), table[key])
	}
	return out
}

func (c *checker) variable(line int, name string) any {
	v, ok := c.vars[name]
	if !ok {
		c.report(line, "unknown variable ${%s} (known: %s)", name, strings.Join(slices.Sorted(maps.Keys(c.vars)), ", "))
		return ""
	}
	return v
}
