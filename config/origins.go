package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Origins says which values of the Origin header pass (spec 01 5.5): those
// equal to an entry of List, or those in which Pattern is found. The zero
// value allows none. Pattern needs [NewOriginPattern].
type Origins struct {
	// List holds whole header values, compared byte for byte.
	List []string
	// Pattern is an RE2 expression searched in the header, not anchored.
	Pattern string
	// Flags of Pattern, of the letters i m s u g y.
	Flags string

	re *regexp.Regexp
}

// NewOriginPattern compiles an origin pattern. Flags i, m and s mean what they
// mean in RE2, y anchors the match at the start, g and u change nothing. An
// expression RE2 cannot run, an unknown flag or a repeated one is an error
// (spec 03 5.3).
func NewOriginPattern(pattern, flags string) (Origins, error) {
	if pattern == "" {
		return Origins{}, errors.New("must not be empty")
	}
	inline, err := inlineFlags(flags)
	if err != nil {
		return Origins{}, err
	}
	// Compiled alone first, so that a pattern cannot close the groups added
	// around it and errors quote what the operator wrote.
	if _, err := regexp.Compile(pattern); err != nil {
		return Origins{}, patternError(err)
	}
	expr := pattern
	if strings.Contains(flags, "y") {
		expr = `\A(?:` + expr + `)`
	}
	if inline != "" {
		expr = "(?" + inline + ")" + expr
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return Origins{}, patternError(err)
	}
	return Origins{Pattern: pattern, Flags: flags, re: re}, nil
}

func patternError(err error) error {
	return fmt.Errorf("is not an RE2 expression: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
}

func inlineFlags(flags string) (string, error) {
	var inline strings.Builder
	for i, f := range flags {
		if !strings.ContainsRune("imsugy", f) {
			return "", fmt.Errorf("has the unknown flag %q; known are i, m, s, u, g and y", f)
		}
		if strings.ContainsRune(flags[:i], f) {
			return "", fmt.Errorf("has the flag %q twice", f)
		}
		if strings.ContainsRune("ims", f) {
			inline.WriteRune(f)
		}
	}
	return inline.String(), nil
}

// IsZero reports whether no origin can pass. An empty list counts as not
// configured.
func (o Origins) IsZero() bool { return len(o.List) == 0 && o.Pattern == "" }

// Allow reports whether a request with this Origin header passes.
func (o Origins) Allow(origin string) bool {
	if o.re != nil {
		return o.re.MatchString(origin)
	}
	for _, one := range o.List {
		if origin == one {
			return true
		}
	}
	return false
}

// Equal reports whether two values allow the same origins by the same rule.
func (o Origins) Equal(p Origins) bool {
	if o.Pattern != p.Pattern || o.Flags != p.Flags || len(o.List) != len(p.List) {
		return false
	}
	for i := range o.List {
		if o.List[i] != p.List[i] {
			return false
		}
	}
	return true
}

// String describes the rule for operators.
func (o Origins) String() string {
	switch {
	case o.Pattern != "":
		return "/" + o.Pattern + "/" + o.Flags
	default:
		return strings.Join(o.List, ", ")
	}
}

// MarshalJSON writes the form the configuration file has.
func (o Origins) MarshalJSON() ([]byte, error) {
	if o.Pattern == "" {
		return json.Marshal(append([]string{}, o.List...))
	}
	return json.Marshal(struct {
		Pattern string `json:"pattern"`
		Flags   string `json:"flags,omitempty"`
	}{o.Pattern, o.Flags})
}

// warnings names entries that cannot match any header a browser sends.
func (o Origins) warnings() []string {
	var lines []string
	for _, s := range o.List {
		if s == "null" {
			continue
		}
		_, rest, hasScheme := strings.Cut(s, "://")
		if !hasScheme || rest == "" || strings.ContainsAny(rest, "/*") {
			lines = append(lines, fmt.Sprintf("[mcp-broker] allowedOrigins entry %q matches no browser: "+
				"origins are compared verbatim, as scheme://host[:port] without a path or wildcard", s))
		}
	}
	return lines
}

type originsValue struct{ p *Origins }

func (v *originsValue) String() string { return v.p.String() }
func (v *originsValue) typ() string    { return "comma list" }

func (v *originsValue) check() error {
	if v.p.Pattern == "" || v.p.re != nil {
		return nil
	}
	o, err := NewOriginPattern(v.p.Pattern, v.p.Flags)
	if err == nil {
		*v.p = o
	}
	return err
}

func (v *originsValue) fromText(s string) error {
	var list []string
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	if len(list) > 0 {
		*v.p = Origins{List: list}
	}
	return nil
}

func (v *originsValue) fromNode(n *node, _ string) []fault {
	switch n.kind {
	case kindArray:
		return v.fromList(n)
	case kindTable:
		return v.fromTable(n)
	}
	return refuse(n, errors.New("must be an array of strings or {pattern, flags}"))
}

func (v *originsValue) fromList(n *node) []fault {
	var list []string
	var found []fault
	for _, item := range n.items {
		if item.kind != kindString || item.text == "" {
			found = append(found, refuse(item, errors.New("must hold strings that are not empty"))...)
			continue
		}
		list = append(list, item.text)
	}
	*v.p = Origins{List: list}
	return found
}

func (v *originsValue) fromTable(n *node) []fault {
	var pattern, flags string
	var found []fault
	known := map[string]*string{"pattern": &pattern, "flags": &flags}
	at := n.pos
	for _, m := range n.members {
		switch dst, ok := known[m.name]; {
		case !ok:
			names := []string{"pattern", "flags"}
			found = append(found, fault{m.pos, unknownKey{name: m.name, hint: hint(m.name, names)}})
		case m.value.kind != kindString:
			found = append(found, refuse(m.value, fmt.Errorf("has a %q that must be a string", m.name))...)
		default:
			*dst = m.value.text
			if m.name == "pattern" {
				at = m.value.pos
			}
		}
	}
	if len(found) > 0 {
		return found
	}
	o, err := NewOriginPattern(pattern, flags)
	if err != nil {
		return faulty(at, fmt.Errorf("pattern %w", err))
	}
	*v.p = o
	return nil
}
