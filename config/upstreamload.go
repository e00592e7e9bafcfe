package config

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// entry is one table of a list of upstreams.
type entry interface {
	keys() []key
	common() *Upstream
	// required are the keys an entry cannot do without.
	required() []string
}

func (s *StdioUpstream) common() *Upstream  { return &s.Upstream }
func (s *StdioUpstream) required() []string { return []string{"name", "command"} }
func (s *MCPServer) common() *Upstream      { return &s.Upstream }
func (s *MCPServer) required() []string     { return []string{"name", "url"} }
func (b *MCPBBundle) common() *Upstream     { return &b.Upstream }
func (b *MCPBBundle) required() []string    { return []string{"name", "path", "publicKey"} }

// lists are the keys that hold entries, each with how an empty one looks.
func (c *Config) lists() map[string]func() entry {
	return map[string]func() entry{
		"stdioUpstreams": func() entry {
			return &StdioUpstream{Upstream: defaultUpstream(false), Isolation: IsolationShared, GraceMs: 5000}
		},
		"mcpServers":  func() entry { return &MCPServer{Upstream: defaultUpstream(true)} },
		"mcpbBundles": func() entry { return &MCPBBundle{Upstream: defaultUpstream(true), GraceMs: 5000} },
	}
}

const templatesKey = "upstreamTemplates"

// upstreams decodes the lists once the whole file has been read: a template may
// stand behind the entry that names it.
func (d *decoder) upstreams() {
	templates := d.templates()
	taken := map[string]bool{}
	for _, list := range []string{"stdioUpstreams", "mcpServers", "mcpbBundles"} {
		n := d.later[list]
		if n == nil {
			continue
		}
		if n.kind != kindArray {
			d.problem(n.pos, "%s must be an array of tables, not %s", label(list), n)
			continue
		}
		for _, item := range n.items {
			d.entry(list, item, templates, taken)
		}
	}
}

func (d *decoder) templates() map[string]*node {
	n := d.later[templatesKey]
	if n == nil {
		return nil
	}
	if n.kind != kindTable {
		d.problem(n.pos, "%s must be a table of templates, not %s", label(templatesKey), n)
		return nil
	}
	templates := map[string]*node{}
	for _, m := range n.members {
		if m.value.kind != kindTable {
			d.problem(m.value.pos, "%s must be a table, not %s", label(templatesKey+"."+m.name), m.value)
			continue
		}
		templates[m.name] = m.value
	}
	return templates
}

func (d *decoder) entry(list string, n *node, templates map[string]*node, taken map[string]bool) {
	if n.kind != kindTable {
		d.problem(n.pos, "%s must hold tables, not %s", label(list), n)
		return
	}
	e := d.cfg.lists()[list]()
	before := len(d.found)
	s := entrySchema("[["+list+"]]", e)
	for _, m := range n.members {
		if m.name == "template" && m.value.kind == kindString {
			d.fromTemplate(m.value, templates, e)
		}
	}
	d.table(n, s)
	if len(d.found) > before {
		return
	}
	d.complete(list, n, e, taken)
}

// fromTemplate gives an entry the settings of a template first.
func (d *decoder) fromTemplate(name *node, templates map[string]*node, e entry) {
	t := templates[name.text]
	if t == nil {
		d.problem(name.pos, "%s has no entry %q%s", label(templatesKey), name.text, hint(name.text, sortedNames(templates)))
		return
	}
	d.table(t, entrySchema(fmt.Sprintf("[%s.%s]", templatesKey, name.text), e))
}

func entrySchema(title string, e entry) *schema {
	s := newSchema(title, "", nil)
	s.add(e.keys())
	return s
}

// complete checks what an entry says as a whole, and adds it.
func (d *decoder) complete(list string, n *node, e entry, taken map[string]bool) {
	for _, name := range e.required() {
		if given(e, name) {
			continue
		}
		d.problem(n.pos, "[[%s]] needs %q", list, name)
		return
	}
	name := e.common().Name
	if taken[name] {
		d.problem(n.pos, "[[%s]] names the slot %q, which another upstream has", list, name)
		return
	}
	taken[name] = true
	if s, ok := e.(*MCPServer); ok && !s.OAuth.IsZero() && (s.OAuth.ClientID == "" || s.OAuth.ClientSecret == "") {
		d.problem(n.pos, `[[%s]] oauth needs "tokenUrl", "clientId" and "clientSecret"`, list)
		return
	}
	d.cfg.add(e)
}

// upstreamProblems checks upstreams made by hand.
func (c *Config) upstreamProblems() []Problem {
	var found []Problem
	taken := map[string]bool{}
	check := func(list string, e entry) {
		problem := func(format string, args ...any) {
			found = append(found, Problem{Message: fmt.Sprintf("[[%s]] ", list) + fmt.Sprintf(format, args...)})
		}
		name := e.common().Name
		for _, required := range e.required() {
			if !given(e, required) {
				problem("needs %q", required)
				return
			}
		}
		for _, k := range e.keys() {
			if err := k.value.check(); err != nil {
				problem("%q: %q %v", name, k.name, err)
			}
		}
		if taken[name] {
			problem("names the slot %q, which another upstream has", name)
		}
		taken[name] = true
	}
	for i := range c.StdioUpstreams {
		check("stdioUpstreams", &c.StdioUpstreams[i])
	}
	for i := range c.MCPServers {
		check("mcpServers", &c.MCPServers[i])
	}
	for i := range c.MCPBBundles {
		check("mcpbBundles", &c.MCPBBundles[i])
	}
	return found
}

func given(e entry, name string) bool {
	for _, k := range e.keys() {
		if k.name == name {
			return k.value.String() != ""
		}
	}
	return false
}

func (c *Config) add(e entry) {
	switch e := e.(type) {
	case *StdioUpstream:
		if e.Isolation == IsolationSession && e.Aggregate {
			c.Warnings = append(c.Warnings, fmt.Sprintf(`[mcp-broker] stdioUpstreams entry %q: isolation = "session" does not reach through _all, whose clients share one process of it; leave aggregate out to keep them apart`, e.Name))
		}
		c.StdioUpstreams = append(c.StdioUpstreams, *e)
	case *MCPServer:
		c.MCPServers = append(c.MCPServers, *e)
	case *MCPBBundle:
		c.MCPBBundles = append(c.MCPBBundles, *e)
	}
}

func checkUpstreamName(name string) (string, error) {
	switch name {
	case "":
		return "", errors.New("must not be empty")
	case "_broker", "_all":
		return "", errors.New("must not be a slot that is reserved by the broker")
	}
	return name, nil
}

// checkRemoteURL looks at the form only; a URL with ${NAME} in it is looked at
// again when it has been expanded.
func checkRemoteURL(s string) (string, error) {
	if strings.Contains(s, "${") {
		return s, nil
	}
	u, err := url.Parse(strings.TrimSpace(s))
	if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "ws", "wss"}, u.Scheme) {
		return "", errors.New("must be a URL that begins with http://, https://, ws:// or wss://")
	}
	if u.User != nil {
		return "", fmt.Errorf("must not hold credentials; use headers%w", errSecret)
	}
	return u.String(), nil
}

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
type mapValue struct{ p *map[string]string }

func (v *mapValue) typ() string           { return "table of strings" }
func (v *mapValue) String() string        { return strings.Join(sortedNames(*v.p), " ") }
func (v *mapValue) fromText(string) error { return errFileOnly }
func (v *mapValue) check() error          { return nil }

func (v *mapValue) fromNode(n *node, _ string) []fault {
	must := errors.New("must be a table of strings")
	if n.kind != kindTable {
		return refuse(n, must)
	}
	merged := maps.Clone(*v.p)
	if merged == nil {
		merged = map[string]string{}
	}
	for _, m := range n.members {
		if m.value.kind != kindString {
			return refuse(m.value, must)
		}
		merged[m.name] = m.value.text
	}
	*v.p = merged
	return nil
}

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
