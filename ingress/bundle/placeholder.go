package bundle

import (
	"path/filepath"
	"strings"
)

// userPrefix begins the names of placeholders for values of the user.
const userPrefix = "user_config."

// substitute replaces the placeholders ${name} in one pass: what is put in is not
// looked at again. Those that value does not know stay.
func substitute(text string, value func(name string) (string, bool)) string {
	var b strings.Builder
	for {
		start := strings.Index(text, "${")
		if start < 0 {
			break
		}
		length := strings.IndexByte(text[start:], '}')
		if length < 0 {
			break
		}
		end := start + length + 1
		b.WriteString(text[:start])
		if v, ok := value(text[start+2 : end-1]); ok {
			b.WriteString(v)
		} else {
			b.WriteString(text[start:end])
		}
		text = text[end:]
	}
	b.WriteString(text)
	return b.String()
}

// userKey returns the key of a text that is one placeholder and nothing else.
func userKey(text string) (string, bool) {
	key, ok := strings.CutPrefix(text, "${"+userPrefix)
	if !ok || !strings.HasSuffix(key, "}") || strings.IndexByte(key, '}') != len(key)-1 {
		return "", false
	}
	return key[:len(key)-1], true
}

// variable returns what a placeholder of the system stands for.
func (r *resolver) variable(name string) (text string, known bool, err error) {
	below := ""
	switch name {
	case "__dirname":
		return r.dir, true, nil
	case "pathSeparator", "/":
		return r.sys.separator(), true, nil
	case "HOME":
	case "DESKTOP":
		below = "Desktop"
	case "DOCUMENTS":
		below = "Documents"
	case "DOWNLOADS":
		below = "Downloads"
	default:
		return "", false, nil
	}
	if r.sys.home == "" {
		return "", true, refusal(ErrUserConfig, "the home directory is unknown, which ${%s} stands for", name)
	}
	return filepath.Join(r.sys.home, below), true, nil
}

// expandSystem replaces the placeholders of the system.
func (r *resolver) expandSystem(text string) (string, error) {
	var failed error
	out := substitute(text, func(name string) (string, bool) {
		v, known, err := r.variable(name)
		if err != nil {
			failed = err
		}
		return v, known
	})
	return out, failed
}

// expand replaces all placeholders of a text that is one string.
func (r *resolver) expand(text string) (string, error) {
	var failed error
	out := substitute(text, func(name string) (string, bool) {
		v, known, err := r.variable(name)
		if key, ok := strings.CutPrefix(name, userPrefix); ok {
			v, err = r.single(key)
			known = true
		}
		if err != nil {
			failed = err
		}
		return v, known
	})
	return out, failed
}

// single returns the text of a value of the user; one that may be missing is "".
func (r *resolver) single(key string) (string, error) {
	v, ok := r.values[key]
	switch {
	case !ok:
		return "", missing(key)
	case v.list:
		return "", refusal(ErrUserConfig, "placeholder \"${%s%s}\" is multi-valued and cannot be used here", userPrefix, key)
	case v.unset:
		return "", nil
	}
	return v.items[0], nil
}

// expandArg gives the arguments that one element of args stands for: a list has
// its own number of them, a value that is not set none.
func (r *resolver) expandArg(arg string) ([]string, error) {
	if key, ok := userKey(arg); ok {
		v, ok := r.values[key]
		if !ok {
			return nil, missing(key)
		}
		return v.items, nil
	}
	text, err := r.expand(arg)
	return []string{text}, err
}

func missing(key string) error {
	return refusal(ErrUserConfig, "missing user_config value: %q", key)
}
