package scenarios

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// words is a string or a list of strings.
type words []string

// span is a length of time: a Go duration ("1.5s", "300ms") or a multiple of the
// heartbeat interval ("0.6 heartbeats").
type span time.Duration

var beats = regexp.MustCompile(`^(\d+(?:\.\d+)?) heartbeats?$`)

func parseSpan(text string, beat time.Duration) (span, error) {
	if m := beats.FindStringSubmatch(text); m != nil {
		n, err := strconv.ParseFloat(m[1], 64)
		if err != nil || n > 1000 {
			return 0, fmt.Errorf("%s is too many heartbeats", m[1])
		}
		return span(n * float64(beat)), nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf(`must be a length of time such as "1.5s", "300ms" or "0.6 heartbeats", not %q`, text)
	}
	return span(d), nil
}

// or returns the span, or another length when it was left out.
func (s span) or(other time.Duration) time.Duration {
	if s == 0 {
		return other
	}
	return time.Duration(s)
}

// field is one key of an action.
type field struct {
	name     string
	required bool
	value    reflect.Value
}

// fields lists the keys of an action from its struct tags, embedded structs
// included: `step:"slot"` or `step:"slot,required"`.
func fields(v reflect.Value) []field {
	var list []field
	for i := range v.NumField() {
		if v.Type().Field(i).Anonymous {
			list = append(list, fields(v.Field(i))...)
			continue
		}
		tag, ok := v.Type().Field(i).Tag.Lookup("step")
		if !ok {
			continue
		}
		name, option, _ := strings.Cut(tag, ",")
		list = append(list, field{name, option == "required", v.Field(i)})
	}
	return list
}

// decode stores the keys of a step in its action.
func (c *checker) decode(kind string, table map[string]any, into action) {
	known := fields(reflect.ValueOf(into).Elem())
	var names []string
	for _, f := range known {
		names = append(names, f.name)
		value, given := table[f.name]
		switch {
		case given:
			if wanted, err := c.store(f.value, value); err != nil {
				c.fail(f.name, "%q %v", f.name, err)
			} else if wanted != "" {
				c.fail(f.name, "%q must be %s, not %s", f.name, wanted, kindOf(value))
			}
		case f.required:
			c.fail(kind, "%q needs %q", kind, f.name)
		}
	}
	for key := range table {
		if !slices.Contains(names, key) {
			c.fail(key, "unknown key %q in a %q step (known: say, %s)", key, kind, strings.Join(names, ", "))
		}
	}
}

// store sets a field; wanted is what the field takes when value is not that.
func (c *checker) store(into reflect.Value, value any) (wanted string, err error) {
	switch p := into.Addr().Interface().(type) {
	case *string:
		s, ok := value.(string)
		if !ok || s == "" {
			return "a string that is not empty", nil
		}
		*p = s
	case *int:
		n, ok := value.(int64)
		if !ok {
			return "an integer", nil
		}
		*p = int(n)
	case *bool:
		b, ok := value.(bool)
		if !ok {
			return "true or false", nil
		}
		*p = b
	case *words:
		list, ok := asWords(value)
		if !ok {
			return "a string or a list of strings", nil
		}
		*p = list
	case *span:
		s, ok := value.(string)
		if !ok {
			return `a length of time such as "1.5s"`, nil
		}
		*p, err = parseSpan(s, c.beat)
	case *map[string]any:
		t, ok := value.(map[string]any)
		if !ok {
			return "a table", nil
		}
		*p = t
	default:
		panic(fmt.Sprintf("scenarios: a step cannot have a %s", into.Type()))
	}
	return "", err
}

func asWords(value any) (words, bool) {
	if s, ok := value.(string); ok && s != "" {
		return words{s}, true
	}
	list, ok := value.([]any)
	if !ok || len(list) == 0 {
		return nil, false
	}
	var out words
	for _, item := range list {
		s, ok := item.(string)
		if !ok || s == "" {
			return nil, false
		}
		out = append(out, s)
	}
	return out, true
}

// kindOf names the type of a TOML value.
func kindOf(value any) string {
	switch v := value.(type) {
	case string:
		if v == "" {
			return "an empty string"
		}
		return "a string"
	case int64:
		return "an integer"
	case float64:
		return "a float"
	case bool:
		return "a boolean"
	case []any, []map[string]any:
		return "a list"
	case map[string]any:
		return "a table"
	}
	return "a date or time"
}
