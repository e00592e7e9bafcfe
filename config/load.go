package config

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Files looked for in the working directory, in this order.
const (
	fileTOML   = "broker.toml"
	fileJSON   = ".mcp-broker/config.json"
	fileLegacy = "mcp-broker.config.json"
)

// MaxFileBytes bounds a configuration file; a larger one is a mistake.
const MaxFileBytes = 1 << 20

// Source says where a configuration comes from. The zero value is the files
// of the working directory, or the defaults.
type Source struct {
	// Path is the file to read. Empty: the one MCP_BROKER_CONFIG names, else
	// ./broker.toml, ./.mcp-broker/config.json or the older
	// ./mcp-broker.config.json if it exists, else none.
	Path string
	// Environ has the form of os.Environ. Nil reads no variables.
	Environ []string
	// Flags win over everything else.
	Flags []Flag
	// Files asks for what a start would need besides: certificate and key that can be
	// read and belong together.
	Files bool
	// Again: a broker runs already with this file, and goes on without it.
	Again bool
}

// Flag is a command-line flag that sets a key.
type Flag struct {
	Name  string // as typed, such as --port
	Key   string // such as port
	Value string
}

// Load reads, merges and validates a configuration. A file that cannot be
// read is a [*FileError]; anything else wrong is an [*Error] with all
// problems.
func Load(src Source) (*Config, error) {
	env := newEnvironment(src.Environ)
	cfg := Default()
	path, designated, err := src.find(env, cfg)
	if err != nil {
		return nil, err
	}
	var data []byte
	if path != "" {
		if data, err = readFile(path, designated); err != nil {
			return nil, src.placed(err)
		}
	}
	if cfg, err = cfg.merge(path, data, env, src.Flags, src.Files); err != nil {
		return nil, err
	}
	if path != "" {
		cfg.Digest = sha256.Sum256(data)
	}
	cfg.skipMissingMounts()
	return cfg, nil
}

// Parse validates one file held in memory, without environment and flags. The
// name decides between TOML and JSON and stands in messages.
func Parse(name string, data []byte) (*Config, error) {
	return Default().merge(name, data, nil, nil, false)
}

// find returns the file to read and how the operator designated it.
func (src Source) find(env environment, cfg *Config) (path, designated string, err error) {
	if src.Path != "" {
		if src.Again {
			return src.Path, "the file", nil
		}
		return src.Path, "the file named on the command line", nil
	}
	if path := env.get(EnvConfig); path != "" {
		return path, "the file designated by " + EnvConfig, nil
	}
	for _, name := range []string{fileTOML, fileJSON, fileLegacy} {
		_, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", "", &FileError{Path: name, Detail: reason(err), Err: err}
		}
		if name == fileLegacy {
			cfg.Warnings = append(cfg.Warnings, fmt.Sprintf("[mcp-broker] Using legacy config at %s; move it to %s", fileLegacy, fileJSON))
		}
		return name, "the file", nil
	}
	return "", "", nil
}

// placed adds to an unreadable file how the operator came to it.
func (src Source) placed(err error) error {
	var unreadable *FileError
	if errors.As(err, &unreadable) {
		unreadable.Named, unreadable.Again = src.Path != "", src.Again
	}
	return err
}

func readFile(path, designated string) ([]byte, error) {
	data, err := ReadRegular(path, MaxFileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &FileError{Path: path, Detail: designated + " does not exist", Err: err}
	}
	if err != nil {
		return nil, &FileError{Path: path, Detail: err.Error(), Err: err}
	}
	return data, nil
}

// reason is an error of the file system without the path, which the message
// has already.
func reason(err error) string {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err.Error()
	}
	return err.Error()
}

// merge applies the file, then variables, then flags to c.
func (c *Config) merge(path string, data []byte, env environment, flags []Flag, files bool) (*Config, error) {
	c.File = path
	d := &decoder{cfg: c, name: path, dir: filepath.Dir(path), places: make(map[string]position), bad: make(map[string]bool), later: make(map[string]*node)}
	var root *node
	if path != "" {
		root = d.parse(string(data))
	}
	if root != nil {
		c.Blank = len(root.members) == 0
		d.table(root, fileSchema(c))
		d.upstreams()
	}

	flagged := make(map[string]string)
	for _, f := range flags {
		flagged[f.Key] = f.Name
	}
	set, found := env.apply(c, flagged)
	found = append(found, c.applyFlags(flags)...)
	for key, name := range flagged {
		set[key] = name
	}
	d.conflicts(c.conflicts(), set)
	if files {
		d.conflicts(c.unreadable(), set)
	}
	d.sort()
	if err := asError(append(d.found, found...)); err != nil {
		return nil, err
	}
	c.Warnings = append(c.Warnings, c.AllowedOrigins.warnings()...)
	return c, nil
}

// parse returns nil when the text has a syntax error, which it reports.
func (d *decoder) parse(doc string) *node {
	doc = strings.TrimPrefix(doc, "\ufeff")
	d.lines = newLines(doc)
	var root *node
	var duplicates []fault
	var syntax *syntaxError
	if d.isJSON() {
		root, duplicates, syntax = parseJSON(doc)
	} else {
		root, syntax = parseTOML(doc)
	}
	if syntax != nil {
		text := syntax.text
		if !d.isJSON() && strings.HasPrefix(strings.TrimSpace(doc), "{") {
			text += " (this looks like JSON, and the name of a JSON file ends in .json)"
		}
		d.problem(syntax.pos, "%s", text)
		return nil
	}
	for _, f := range duplicates {
		d.problem(f.pos, "%v", f.err)
	}
	return root
}

func (c *Config) applyFlags(flags []Flag) []Problem {
	var found []Problem
	byName := make(map[string]key)
	for _, k := range c.keys() {
		if !k.envOnly {
			byName[k.name] = k
		}
	}
	for _, f := range flags {
		k, ok := byName[f.Key]
		if !ok {
			found = append(found, Problem{Message: fmt.Sprintf("%s sets the unknown key %q", f.Name, f.Key)})
			continue
		}
		if err := k.value.fromText(f.Value); err != nil {
			found = append(found, Problem{Message: fmt.Sprintf("%s %q %v", f.Name, f.Value, err)})
		}
	}
	return found
}
