package config

import (
	"errors"
	"fmt"
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

// upstreamLists are the names of the lists, in the order they are read.
func upstreamLists() []string { return []string{"stdioUpstreams", "mcpServers", "mcpbBundles"} }

// upstreams decodes the lists once the whole file has been read: a template may
// stand behind the entry that names it.
func (d *decoder) upstreams() {
	templates := d.templates()
	taken := map[string]bool{}
	for _, list := range upstreamLists() {
		n := d.later[list]
		if n == nil {
			continue
		}
		if n.kind != kindArray {
			d.notAList(list, n)
			continue
		}
		for _, item := range n.items {
			d.entry(list, item, templates, taken)
		}
	}
}

// template is an entry of upstreamTemplates. One that is wrong by itself is reported
// once, and not again with each entry that starts from it.
type template struct {
	node  *node
	wrong bool
}

func (d *decoder) templates() map[string]template {
	n := d.later[templatesKey]
	if n == nil {
		return nil
	}
	if n.kind != kindTable {
		d.problem(n.pos, "%s must be a table of templates, not %s", label(templatesKey), n)
		return nil
	}
	homes := d.cfg.homes()
	templates := map[string]template{}
	for _, m := range n.members {
		if m.value.kind != kindTable {
			d.problem(m.value.pos, "%s must be a table, not %s", label(templatesKey+"."+m.name), m.value)
			templates[m.name] = template{wrong: true}
			continue
		}
		before := len(d.found)
		kept := *m.value
		kept.members = slices.DeleteFunc(slices.Clone(kept.members), func(set member) bool { return d.foreign(m.name, set, homes) })
		templates[m.name] = template{&kept, len(d.found) > before}
	}
	return templates
}

// foreign reports a key that no template can hold.
func (d *decoder) foreign(name string, set member, homes map[string][]string) bool {
	s := newSchema(fmt.Sprintf("[%s.%s]", templatesKey, name), "", nil)
	switch {
	case set.name == "template":
		d.problem(set.pos, `%s must not have "template": it is for entries, a template starts from nothing`, s.title)
	case homes[set.name] == nil:
		for known := range homes {
			s.keys[known] = key{}
		}
		s.misplaced = sortedNames(fileSchema(d.cfg).keys)
		d.unknown(set, s)
	default:
		return false
	}
	return true
}

func (d *decoder) entry(list string, n *node, templates map[string]template, taken map[string]bool) {
	if n.kind != kindTable {
		d.problem(n.pos, "%s must hold tables, not %s", label(list), n)
		return
	}
	e := d.cfg.lists()[list]()
	before, sound := len(d.found), true
	s := d.entrySchema("[["+list+"]]", e)
	for _, m := range n.members {
		if m.name == "template" && m.value.kind == kindString {
			sound = d.fromTemplate(m.value, templates, e, entryTitle(list, n))
		}
	}
	d.table(n, s)
	if !sound || len(d.found) > before {
		return
	}
	d.complete(list, n, e, taken)
}

// entryTitle names an entry in a message about something else.
func entryTitle(list string, n *node) string {
	if name := n.member("name"); name != nil && name.kind == kindString {
		return fmt.Sprintf("[[%s]] %s", list, quote(name.text))
	}
	return "a [[" + list + "]]"
}

// fromTemplate gives an entry the settings of a template first. It is false where the
// template is wrong.
func (d *decoder) fromTemplate(name *node, templates map[string]template, e entry, user string) bool {
	t, known := templates[name.text]
	switch {
	case !known:
		d.problem(name.pos, "%s has no entry %q%s", label(templatesKey), name.text, hint(name.text, sortedNames(templates)))
	case t.node != nil:
		d.table(t.node, d.entrySchema(fmt.Sprintf("[%s.%s], which %s starts from", templatesKey, name.text, user), e))
	}
	return known && !t.wrong
}

// entrySchema also recognises keys that belong elsewhere.
func (d *decoder) entrySchema(title string, e entry) *schema {
	s := entrySchema(title, e)
	s.homes = d.cfg.homes()
	s.misplaced = sortedNames(fileSchema(d.cfg).keys)
	return s
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
	if s, ok := e.(*MCPServer); ok && !s.OAuth.IsZero() && (s.OAuth.ClientID == "" || s.OAuth.ClientSecret == "") {
		d.problem(n.pos, `[[%s]] oauth needs "tokenUrl", "clientId" and "clientSecret"`, list)
		return
	}
	name := e.common().Name
	switch {
	case e.common().Disabled:
		d.cfg.Disabled = append(d.cfg.Disabled, name)
	case taken[name]:
		d.problem(n.pos, "[[%s]] names the slot %q, which another upstream has", list, name)
	default:
		taken[name] = true
		d.cfg.add(e)
	}
}

// dropDisabled takes the entries that are not to be started out of the lists.
func (c *Config) dropDisabled() {
	c.StdioUpstreams = withoutDisabled(c, c.StdioUpstreams, func(s *StdioUpstream) *Upstream { return &s.Upstream })
	c.MCPServers = withoutDisabled(c, c.MCPServers, func(s *MCPServer) *Upstream { return &s.Upstream })
	c.MCPBBundles = withoutDisabled(c, c.MCPBBundles, func(b *MCPBBundle) *Upstream { return &b.Upstream })
}

func withoutDisabled[E any](c *Config, list []E, common func(*E) *Upstream) []E {
	isDisabled := func(e E) bool { return common(&e).Disabled }
	if !slices.ContainsFunc(list, isDisabled) {
		return list
	}
	var kept []E // the list is the caller's
	c.Disabled = slices.Clip(c.Disabled)
	for _, e := range list {
		if isDisabled(e) {
			c.Disabled = append(c.Disabled, common(&e).Name)
			continue
		}
		kept = append(kept, e)
	}
	return kept
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
			err := k.value.check()
			if err == nil {
				err = k.checkTexts()
			}
			if err != nil {
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
		return "", errEmpty
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
