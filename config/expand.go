package config

import (
	"errors"
	"fmt"
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
		i := strings.Index(s, "${")
		if i < 0 {
			out.WriteString(s)
			return out.String(), nil
		}
		if i > 0 && s[i-1] == '$' {
			out.WriteString(s[:i-1] + "${")
			s = s[i+2:]
			continue
		}
		out.WriteString(s[:i])
		name, rest, closed := strings.Cut(s[i+2:], "}")
		if !closed {
			return "", fmt.Errorf(`%w: "${" without "}"`, ErrUnresolved)
		}
		value, err := v.resolve(name)
		if err != nil {
			return "", err
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

func (v Variables) fromFile(path string) (string, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(v.Dir, path)
	}
	info, err := os.Stat(path)
	if err == nil && info.Size() > maxSecretBytes {
		err = fmt.Errorf("it is larger than %d bytes", maxSecretBytes)
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return "", fmt.Errorf("%w: the file %s cannot be read: %s", ErrUnresolved, path, reason(err))
	}
	return strings.TrimRight(string(data), "\r\n"), nil
}
