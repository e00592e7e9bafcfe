package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Variables is what ${...} may refer to.
type Variables struct {
	// Vars win over Environ.
	Vars map[string]string
	// Lookup finds a variable of the environment; nil finds none.
	Lookup func(name string) (string, bool)
	// Dir is what a relative ${file:PATH} starts from.
	Dir string
	// Resolved is told what stood for each ${name}, so that secrets can be kept
	// out of texts; nil is told nothing.
	Resolved func(name, value string)
}

// ErrUnresolved is a ${...} that stands for nothing.
var ErrUnresolved = errors.New("unresolved")

// maxSecretBytes bounds a file named by ${file:PATH}.
const maxSecretBytes = 1 << 20

// Expand replaces ${NAME}, ${NAME:-default} and ${file:PATH} in s, once: what
// comes out is not expanded again. A name that is not set is an error, one that
// is set to "" is not; the default stands in for both. The trailing line break of
// a file is cut off. "$${" is a literal "${". The error names the variable or the
// file, never a value.
func Expand(s string, v Variables) (string, error) {
	var out strings.Builder
	for {
		before, name, rest, found, err := cutReference(s)
		if err != nil {
			return "", fmt.Errorf("%w: %w", ErrUnresolved, err)
		}
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		value, err := v.resolve(name)
		if err != nil {
			return "", err
		}
		if v.Resolved != nil {
			v.Resolved(name, value)
		}
		out.WriteString(value)
		s = rest
	}
}

func (v Variables) resolve(name string) (string, error) {
	if path, isFile := strings.CutPrefix(name, "file:"); isFile {
		return v.fromFile(path)
	}
	name, fallback, hasDefault := strings.Cut(name, ":-")
	value, set := v.Vars[name]
	if !set && v.Lookup != nil {
		value, set = v.Lookup(name)
	}
	switch {
	case hasDefault && value == "":
		return fallback, nil
	case !set:
		return "", fmt.Errorf("%w: the variable %s is not set", ErrUnresolved, name)
	}
	return value, nil
}

// ReadRegular reads a file of at most limit bytes. It does not open what a reader
// could wait for, such as a named pipe: every file that a configuration names, and
// the configuration itself, is read this way. Errors do not repeat the path.
func ReadRegular(path string, limit int64) ([]byte, error) {
	switch info, err := os.Stat(path); {
	case err != nil:
		return nil, withoutPath(err)
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, withoutPath(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1)) // it may be growing
	if err != nil {
		return nil, withoutPath(err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("it is larger than %d bytes", limit)
	}
	return data, nil
}

func withoutPath(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

func (v Variables) fromFile(path string) (string, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(v.Dir, path)
	}
	data, err := ReadRegular(path, maxSecretBytes)
	if err != nil {
		return "", fmt.Errorf("%w: the file %s cannot be read: %w", ErrUnresolved, path, err)
	}
	return strings.TrimRight(string(data), "\r\n"), nil
}
