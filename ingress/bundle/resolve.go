package bundle

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// resolver makes a command of a manifest.
type resolver struct {
	manifest Manifest
	sys      system
	dir      string                 // where the bundle is, or will be
	has      func(name string) bool // tells whether it has a file

	values     map[string]value
	secrets    []string
	executable string // name of the file that is the command, "" without one
}

func (r *resolver) resolve(o Options) (*Launch, error) {
	c := r.manifest.command(r.sys.platform())
	if err := r.setValues(o.UserConfig, o.BaseDir, usedKeys(c)); err != nil {
		return nil, err
	}
	l := &Launch{Dir: r.dir, Manifest: r.manifest, Secrets: r.maskable()}
	command, err := r.expand(c.Command)
	if err != nil {
		return nil, err
	}
	if l.Command, err = r.locate(command, c.Command); err != nil {
		return nil, err
	}
	for _, arg := range c.Args {
		list, err := r.expandArg(arg)
		if err != nil {
			return nil, err
		}
		l.Args = append(l.Args, list...)
	}
	l.Env, err = r.environment(c.Env)
	return l, err
}

// environment leaves out a variable whose whole value is a key that is not set.
func (r *resolver) environment(from map[string]string) (map[string]string, error) {
	var env map[string]string
	for _, name := range slices.Sorted(maps.Keys(from)) {
		if key, ok := userKey(from[name]); ok && r.values[key].unset {
			continue
		}
		text, err := r.expand(from[name])
		if err != nil {
			return nil, err
		}
		if env == nil {
			env = make(map[string]string)
		}
		env[name] = text
	}
	return env, nil
}

// locate finds a command that is part of the bundle: one with a slash is relative
// to it. Others are looked up in PATH by whoever starts them. Errors show it as it
// was written: a value of the user may be in it.
func (r *resolver) locate(command, written string) (string, error) {
	if strings.TrimSpace(command) == "" {
		return "", refusal(ErrManifest, "manifest mcp_config has no command")
	}
	path := command
	if !filepath.IsAbs(path) {
		if !strings.ContainsAny(path, `/`+r.sys.separator()) {
			return command, nil
		}
		path = filepath.Join(r.dir, filepath.FromSlash(path))
	} else if !strings.HasPrefix(path, r.dir+string(filepath.Separator)) {
		return command, nil
	}
	inside, err := filepath.Rel(r.dir, path)
	if err != nil || !filepath.IsLocal(inside) {
		return "", refusal(ErrManifest, "the command %q leaves the bundle", written)
	}
	names := []string{filepath.ToSlash(inside)}
	if r.sys.goos == "windows" {
		names = append(names, names[0]+".exe")
	}
	for _, name := range names {
		if r.has(name) {
			r.executable = name
			return filepath.Join(r.dir, filepath.FromSlash(name)), nil
		}
	}
	return "", refusal(ErrManifest, "the command %q is not in the bundle", written)
}

// maskable orders the secrets so that none is cut by a shorter one inside it.
func (r *resolver) maskable() []string {
	list := slices.DeleteFunc(slices.Clone(r.secrets), func(s string) bool { return s == "" })
	slices.SortFunc(list, func(a, b string) int { return len(b) - len(a) })
	return list
}

// usedKeys are those of user_config that a command mentions.
func usedKeys(c MCPConfig) map[string]bool {
	used := make(map[string]bool)
	note := func(text string) {
		substitute(text, func(name string) (string, bool) {
			if key, ok := strings.CutPrefix(name, userPrefix); ok {
				used[key] = true
			}
			return "", false
		})
	}
	note(c.Command)
	for _, arg := range c.Args {
		note(arg)
	}
	for _, text := range c.Env {
		note(text)
	}
	return used
}
