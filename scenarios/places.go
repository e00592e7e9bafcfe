package scenarios

import "strings"

// places holds the line of every step and key of a script. The TOML library
// reports positions of syntax errors only.
type places struct {
	top   map[string]int // keys of the top level
	vars  map[string]int // keys of [vars]
	steps []stepPlaces
}

type stepPlaces struct {
	line int
	keys map[string]int
}

// step returns the places of step i. Steps in another notation than [[step]]
// are all where the key "step" is.
func (p *places) step(i int) stepPlaces {
	if i < len(p.steps) {
		return p.steps[i]
	}
	return stepPlaces{line: max(p.top["step"], 1)}
}

// line is where the step has key, or the step's own line.
func (s stepPlaces) at(key string) int {
	if line, ok := s.keys[key]; ok {
		return line
	}
	return s.line
}

// locator walks a document the TOML library has accepted: it checks nothing, and
// only promises to end on any text.
type locator struct {
	text string
	i    int
	line int

	places *places
	table  map[string]int // of the table that keys belong to
}

func locate(text string) *places {
	p := &places{top: map[string]int{}, vars: map[string]int{}}
	text = strings.TrimPrefix(text, "\ufeff") // a byte order mark
	l := &locator{text: text, line: 1, places: p, table: p.top}
	for l.i < len(text) {
		switch c := text[l.i]; {
		case c == '\n' || c == ' ' || c == '\t' || c == '\r':
			l.next()
		case c == '#':
			l.skipTo("\n")
		case c == '[':
			l.header()
		default:
			l.pair()
		}
	}
	return p
}

func (l *locator) next() {
	if l.text[l.i] == '\n' {
		l.line++
	}
	l.i++
}

// skipTo stops before the first byte of set and returns what it passed.
func (l *locator) skipTo(set string) string {
	start := l.i
	for l.i < len(l.text) && strings.IndexByte(set, l.text[l.i]) < 0 {
		l.next()
	}
	return l.text[start:l.i]
}

func (l *locator) header() {
	line := l.line
	name := strings.Trim(l.skipTo("\n#"), "[] \t\r")
	first, rest, nested := strings.Cut(name, ".")
	last := len(l.places.steps) - 1
	switch {
	case name == "vars":
		l.table = l.places.vars
	case name == "step":
		l.table = map[string]int{}
		l.places.steps = append(l.places.steps, stepPlaces{line, l.table})
	case first == "step" && nested && last >= 0:
		key, _, _ := strings.Cut(rest, ".")
		l.places.steps[last].keys[bare(key)] = line
		l.table = map[string]int{}
	default:
		l.places.top[bare(first)] = line
		l.table = map[string]int{}
	}
}

// pair records the first part of a key and passes its value.
func (l *locator) pair() {
	line := l.line
	key := l.skipTo("=\n")
	first, _, _ := strings.Cut(key, ".")
	if name := bare(first); l.table[name] == 0 {
		l.table[name] = line
	}
	for depth := 0; l.i < len(l.text); {
		switch l.text[l.i] {
		case '"', '\'':
			l.quoted()
			continue
		case '#':
			l.skipTo("\n")
			continue
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case '\n':
			if depth <= 0 {
				return
			}
		}
		l.next()
	}
}

// quoted passes a string of any of the four kinds.
func (l *locator) quoted() {
	quote := l.text[l.i : l.i+1]
	end := quote
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(l.text[l.i:], triple) {
		end = triple
	}
	l.i += len(end)
	for l.i < len(l.text) && !strings.HasPrefix(l.text[l.i:], end) {
		if quote == `"` && l.text[l.i] == '\\' && l.i+1 < len(l.text) {
			l.next()
		}
		l.next()
	}
	l.i = min(l.i+len(end), len(l.text))
}

func bare(key string) string { return strings.Trim(strings.TrimSpace(key), `"'`) }
