package bundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// value is what a key of user_config resolved to.
type value struct {
	items []string // one, unless it is a list
	list  bool
	unset bool // optional, without value and default
}

// Types of user_config. Others are taken for strings.
const (
	typeNumber    = "number"
	typeBoolean   = "boolean"
	typeDirectory = "directory"
	typePath      = "file"
)

// setValues resolves what the operator gave and the manifest declares. All
// problems are found at once; none repeats a value.
func (r *resolver) setValues(given map[string]any, baseDir string, used map[string]bool) error {
	r.values = make(map[string]value)
	var problems []error
	for _, key := range slices.Sorted(maps.Keys(r.manifest.UserConfig)) {
		option := r.manifest.UserConfig[key]
		v, err := r.declared(key, option, given[key], baseDir)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		r.values[key] = v
		if option.Sensitive {
			r.secrets = append(r.secrets, v.items...)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if _, ok := r.manifest.UserConfig[key]; ok || given[key] == nil {
			continue
		}
		if !used[key] {
			problems = append(problems, refusal(ErrUserConfig, "the bundle knows no user_config value %q", key))
			continue
		}
		// A manifest need not declare what it uses.
		v, err := convert(UserOption{Multiple: isList(given[key])}, given[key])
		if err != nil {
			problems = append(problems, refusal(ErrUserConfig, "user_config %q %v", key, err))
			continue
		}
		r.values[key] = v
	}
	return join(problems)
}

// join makes one refusal of several.
func join(problems []error) error {
	if len(problems) < 2 {
		return errors.Join(problems...)
	}
	var texts []string
	for _, p := range problems {
		var e *Error
		if errors.As(p, &e) {
			texts = append(texts, e.Text)
		}
	}
	return refusal(ErrUserConfig, "%s", strings.Join(texts, "; "))
}

// declared resolves one option: the operator's value, else the default, which
// satisfies a required option too.
func (r *resolver) declared(key string, o UserOption, given any, baseDir string) (value, error) {
	from, fallback := given, false
	if empty(from, o) {
		from, fallback = o.Default, true
	}
	if empty(from, o) {
		if o.Required {
			return value{}, missing(key)
		}
		return value{unset: true}, nil
	}
	v, err := convert(o, from)
	if err != nil {
		return value{}, refusal(ErrUserConfig, "user_config %q %v", key, err)
	}
	for i, item := range v.items {
		if fallback {
			if item, err = r.expandSystem(item); err != nil {
				return value{}, err
			}
		}
		if baseDir != "" && (o.Type == typeDirectory || o.Type == typePath) && !filepath.IsAbs(item) {
			item = filepath.Join(baseDir, item)
		}
		v.items[i] = item
	}
	return v, nil
}

// empty tells whether a value counts as none: nothing, and where something is
// required or a path is asked for, an empty text or list as well.
func empty(v any, o UserOption) bool {
	needed := o.Required || o.Type == typeDirectory || o.Type == typePath
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return needed && v == ""
	case []any:
		return needed && (len(v) == 0 || slices.Contains(v, any("")))
	case []string:
		return needed && (len(v) == 0 || slices.Contains(v, ""))
	}
	return false
}

func isList(v any) bool {
	switch v.(type) {
	case []any, []string:
		return true
	}
	return false
}

// convert checks a value against its option. The errors continue a sentence that
// begins with the key.
func convert(o UserOption, from any) (value, error) {
	v := value{items: []string{}, list: o.Multiple}
	var items []any
	switch from := from.(type) {
	case []any:
		items = from
	case []string:
		for _, s := range from {
			items = append(items, s)
		}
	default:
		items = []any{from}
	}
	if isList(from) && !o.Multiple {
		return v, errors.New("takes one value, not a list")
	}
	for _, item := range items {
		text, err := convertOne(o, item)
		if err != nil {
			return v, err
		}
		v.items = append(v.items, text)
	}
	return v, nil
}

func convertOne(o UserOption, from any) (string, error) {
	switch o.Type {
	case typeNumber:
		return convertNumber(o, from)
	case typeBoolean:
		switch from {
		case true, "true":
			return "true", nil
		case false, "false":
			return "false", nil
		}
		return "", errors.New("must be true or false")
	}
	if s, ok := from.(string); ok {
		return s, nil
	}
	if o.Type == typeDirectory || o.Type == typePath {
		return "", errors.New("must be a path, as a string")
	}
	if b, ok := from.(bool); ok {
		return strconv.FormatBool(b), nil
	}
	if text, ok := numberText(from); ok {
		return text, nil
	}
	return "", errors.New("must be a string")
}

// convertNumber takes digits in a string too: that is what a variable of the
// environment gives.
func convertNumber(o UserOption, from any) (string, error) {
	text, ok := numberText(from)
	if s, isText := from.(string); isText {
		text, ok = strings.TrimSpace(s), true
	}
	n, err := strconv.ParseFloat(text, 64)
	if !ok || err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return "", errors.New("must be a number")
	}
	if o.Min != nil && n < *o.Min {
		return "", fmt.Errorf("must be at least %v", *o.Min)
	}
	if o.Max != nil && n > *o.Max {
		return "", fmt.Errorf("must be at most %v", *o.Max)
	}
	return text, nil
}

// numberText writes a number as it would be written in the manifest.
func numberText(from any) (string, bool) {
	switch n := from.(type) {
	case json.Number:
		return n.String(), true
	case int64:
		return strconv.FormatInt(n, 10), true
	case int:
		return strconv.Itoa(n), true
	case float64:
		return strconv.FormatFloat(n, 'f', -1, 64), true
	}
	return "", false
}
