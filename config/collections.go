package config

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// errFileOnly answers a variable or a flag for a value that only a file can set.
var errFileOnly = errors.New("can be set in a file only")

// listValue is a list of strings.
type listValue struct{ p *[]string }

func (v *listValue) typ() string           { return "list of strings" }
func (v *listValue) String() string        { return strings.Join(*v.p, " ") }
func (v *listValue) fromText(string) error { return errFileOnly }
func (v *listValue) check() error          { return nil }

func (v *listValue) fromNode(n *node, _ string) []fault {
	list, found := stringsFrom(n)
	if len(found) == 0 {
		*v.p = list
	}
	return found
}

func stringsFrom(n *node) ([]string, []fault) {
	must := errors.New("must be a list of strings")
	if n.kind != kindArray {
		return nil, refuse(n, must)
	}
	list := []string{}
	for _, item := range n.items {
		if item.kind != kindString {
			return nil, refuse(item, must)
		}
		list = append(list, item.text)
	}
	return list, nil
}

// mapValue is a table of strings. One of an entry is merged over one of its
// template.
type mapValue struct {
	p *map[string]string
	// entry judges one of them; nil takes all.
	entry func(name, text string) error
}

func (v *mapValue) typ() string           { return "table of strings" }
func (v *mapValue) String() string        { return strings.Join(sortedNames(*v.p), " ") }
func (v *mapValue) fromText(string) error { return errFileOnly }

func (v *mapValue) check() error {
	for _, name := range sortedNames(*v.p) {
		if err := v.judge(name, (*v.p)[name]); err != nil {
			return err
		}
	}
	return nil
}

func (v *mapValue) judge(name, text string) error {
	if v.entry == nil {
		return nil
	}
	return v.entry(name, text)
}

func (v *mapValue) fromNode(n *node, _ string) []fault {
	must := errors.New("must be a table of strings")
	if n.kind != kindTable {
		return refuse(n, must)
	}
	merged := maps.Clone(*v.p)
	if merged == nil {
		merged = map[string]string{}
	}
	var found []fault
	for _, m := range n.members {
		if m.value.kind != kindString {
			found = append(found, refuse(m.value, must)...)
			continue
		}
		found = append(found, faulty(m.pos, v.judge(m.name, m.value.text))...)
		merged[m.name] = m.value.text
	}
	if len(found) == 0 {
		*v.p = merged
	}
	return found
}

func checkVar(name, _ string) error {
	if !variableName.MatchString(name) {
		return fmt.Errorf("has the name %s, which no ${...} can refer to", quote(name))
	}
	return nil
}

func checkVariable(name, text string) error {
	switch {
	case name == "" || strings.ContainsAny(name, "=\x00"):
		return fmt.Errorf("has the name %s, which no variable can have", quote(name))
	case strings.ContainsRune(text, 0):
		return fmt.Errorf("has a NUL character in %s", quote(name))
	}
	return nil
}

// ownHeaders are set by the broker, or by HTTP, for each request anew.
var ownHeaders = []string{
	"Accept", "Connection", "Content-Length", "Content-Type", "Keep-Alive", "Last-Event-Id", "Mcp-Protocol-Version", "Mcp-Session-Id",
	"Trailer", "Transfer-Encoding", "Upgrade",
}

// checkHeader does not repeat the text of a header, which may be a secret.
func checkHeader(name, text string) error {
	canonical := http.CanonicalHeaderKey(name)
	switch {
	case name == "" || strings.IndexFunc(name, notOfToken) >= 0:
		return fmt.Errorf("has the name %s, which no header can have", quote(name))
	case slices.Contains(ownHeaders, canonical) || strings.HasPrefix(canonical, "Sec-Websocket-"):
		return fmt.Errorf("must not have %s, which the broker sets itself", quote(name))
	case strings.IndexFunc(text, notOfHeader) >= 0:
		return fmt.Errorf("has a line break or another control character in %s", quote(name))
	}
	return nil
}

// notOfToken tells what a name of a header cannot hold (RFC 9110 5.6.2).
func notOfToken(r rune) bool {
	letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	return !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

func notOfHeader(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// inheritValue takes true, false or names.
type inheritValue struct{ p *Inherit }

func (v *inheritValue) typ() string           { return "true, false or a list of names" }
func (v *inheritValue) String() string        { return strings.Join(v.p.Names, " ") }
func (v *inheritValue) fromText(string) error { return errFileOnly }
func (v *inheritValue) check() error          { return nil }

func (v *inheritValue) fromNode(n *node, _ string) []fault {
	if n.kind == kindBool {
		*v.p = Inherit{All: n.truth}
		return nil
	}
	names, found := stringsFrom(n)
	if len(found) > 0 {
		return refuse(n, errors.New("must be true, false or a list of names"))
	}
	*v.p = Inherit{Names: names}
	return nil
}
