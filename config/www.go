package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// WWW is what the broker serves beside MCP.
type WWW struct {
	// Open is the page to show in a browser after the start: empty for none,
	// OpenRoot, a path, or a URL of this broker (spec 01 5.11). Default none.
	Open string `toml:"open" json:"open,omitempty"`
	// Mounts are the directories whose files are served, each prefix once.
	// Default none.
	Mounts []Mount `toml:"mounts" json:"mounts,omitempty"`
}

// OpenRoot is the value of [WWW.Open] for the page at /.
const OpenRoot = "true"

// Mount publishes the files of a directory (spec 01 5.9).
type Mount struct {
	// URLPrefix is a plain URL path that starts with a slash and, unless it is
	// the root, does not end with one.
	URLPrefix string `toml:"urlPrefix" json:"urlPrefix"`
	// Dir is a directory. After [Load], a relative one from a file is joined to
	// that file's directory (spec 03 5.2).
	Dir string `toml:"dir" json:"dir"`
}

// clean returns m with a normal prefix.
func (m Mount) clean() (Mount, error) {
	prefix, err := checkRoot(m.URLPrefix)
	if err != nil {
		return m, fmt.Errorf("has a urlPrefix that %w, not %s", err, quote(m.URLPrefix))
	}
	if prefix = strings.TrimRight(prefix, "/"); prefix == "" {
		prefix = "/"
	}
	for piece := range strings.SplitSeq(prefix[1:], "/") {
		if prefix != "/" && (piece == "" || piece == "." || piece == "..") {
			return m, fmt.Errorf("has a urlPrefix that must not hold empty or dotted segments, not %s", quote(m.URLPrefix))
		}
	}
	if strings.TrimSpace(m.Dir) == "" {
		return m, errors.New(`has an entry without "dir"`)
	}
	m.URLPrefix = prefix
	return m, nil
}

func at(prefix string) func(Mount) bool {
	return func(m Mount) bool { return m.URLPrefix == prefix }
}

func taken(prefix string) error { return fmt.Errorf("has the urlPrefix %s twice", quote(prefix)) }

// mountsValue is the list in the file.
type mountsValue struct{ p *[]Mount }

func (v *mountsValue) String() string        { return "" }
func (v *mountsValue) typ() string           { return "list of {urlPrefix, dir}" }
func (v *mountsValue) fromText(string) error { return errors.New("can be set in a file only") }

func (v *mountsValue) check() error {
	var mounts []Mount
	for _, m := range *v.p {
		m, err := m.clean()
		if err != nil {
			return err
		}
		if slices.ContainsFunc(mounts, at(m.URLPrefix)) {
			return taken(m.URLPrefix)
		}
		mounts = append(mounts, m)
	}
	*v.p = mounts
	return nil
}

func (v *mountsValue) fromNode(n *node, dir string) []fault {
	if n.kind != kindArray {
		return refuse(n, errors.New("must be an array of {urlPrefix, dir}"))
	}
	var mounts []Mount
	var found []fault
	for _, item := range n.items {
		m, faults := mountFrom(item, dir)
		if len(faults) == 0 && slices.ContainsFunc(mounts, at(m.URLPrefix)) {
			faults = faulty(item.pos, taken(m.URLPrefix))
		}
		found = append(found, faults...)
		mounts = append(mounts, m)
	}
	*v.p = mounts
	return found
}

func mountFrom(n *node, dir string) (m Mount, found []fault) {
	if n.kind != kindTable {
		return m, refuse(n, errors.New("must hold tables {urlPrefix, dir}"))
	}
	pos := n.pos
	for _, member := range n.members {
		known := map[string]*string{"urlPrefix": &m.URLPrefix, "dir": &m.Dir}
		switch dst, ok := known[member.name]; {
		case !ok:
			u := unknownKey{member.name, hint(member.name, sortedNames(known)), true}
			found = append(found, fault{member.pos, u})
		case member.value.kind != kindString:
			found = append(found, refuse(member.value, fmt.Errorf("has a %q that must be a string", member.name))...)
		default:
			*dst = member.value.text
			if member.name == "urlPrefix" {
				pos = member.value.pos
			}
		}
	}
	if len(found) > 0 {
		return m, found
	}
	if m.URLPrefix == "" {
		return m, faulty(n.pos, errors.New(`has an entry without "urlPrefix"`))
	}
	m, err := m.clean()
	if err == nil && !filepath.IsAbs(m.Dir) {
		m.Dir = filepath.Join(dir, m.Dir)
	}
	return m, faulty(pos, err)
}

// mountAt is a variable that mounts one directory, in place of one that the file
// has at the same prefix.
type mountAt struct {
	p      *[]Mount
	prefix string
}

func (v *mountAt) String() string                 { return "" }
func (v *mountAt) typ() string                    { return "directory" }
func (v *mountAt) check() error                   { return nil }
func (v *mountAt) fromNode(*node, string) []fault { return nil }

func (v *mountAt) fromText(s string) error {
	others := slices.DeleteFunc(slices.Clone(*v.p), at(v.prefix))
	*v.p = append(others, Mount{v.prefix, s})
	return nil
}

// skipMissingMounts drops, with a warning, the mounts that have nothing to serve.
func (c *Config) skipMissingMounts() {
	c.WWW.Mounts = slices.DeleteFunc(c.WWW.Mounts, func(m Mount) bool {
		var why string
		switch info, err := os.Stat(m.Dir); {
		case err != nil:
			why = reason(err)
		case !info.IsDir():
			why = "not a directory"
		default:
			return false
		}
		c.Warnings = append(c.Warnings, fmt.Sprintf("[mcp-broker] www.mounts entry %q is skipped: %s: %s", m.URLPrefix, m.Dir, why))
		return true
	})
}

// openValue takes true, false or the page itself. Whether a page can be opened
// is known once the broker listens: it never refuses a start.
type openValue struct{ p *string }

func (v *openValue) typ() string  { return "true, false, a path or a URL" }
func (v *openValue) check() error { return v.fromText(*v.p) }

func (v *openValue) String() string {
	if *v.p == "" {
		return "false"
	}
	return *v.p
}

func (v *openValue) fromText(s string) error {
	switch s = strings.TrimSpace(s); strings.ToLower(s) {
	case "", "0", "false":
		*v.p = ""
	case "1", "true":
		*v.p = OpenRoot
	default:
		*v.p = s
	}
	return nil
}

func (v *openValue) fromNode(n *node, _ string) []fault {
	switch n.kind {
	case kindString:
		_ = v.fromText(n.text)
	case kindBool:
		_ = v.fromText(n.String())
	default:
		return refuse(n, errors.New("must be true, false or a string"))
	}
	return nil
}
