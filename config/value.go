package config

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
)

// value is a settable field. Errors complete a sentence that begins with the
// name of the setting: `must be ...`.
type value interface {
	// fromNode reads a value of a file in directory dir.
	fromNode(n *node, dir string) []fault
	// fromText reads a variable or a flag.
	fromText(s string) error
	// check validates the value the field holds.
	check() error
	// typ names what the setting takes, for help texts.
	typ() string
	// String is the present value as help texts show it.
	String() string
}

// fault is one thing wrong with a value, where it was found.
type fault struct {
	pos position
	err error
}

func faulty(pos position, err error) []fault {
	if err == nil {
		return nil
	}
	return []fault{{pos, err}}
}

// errSecret marks a refusal that must not repeat what the file has.
var errSecret = errors.New("")

// errEmpty says enough: there is nothing to repeat.
var errEmpty = errors.New("must not be empty")

// refuse says what a setting must be and what the file has instead.
func refuse(n *node, must error) []fault {
	if errors.Is(must, errSecret) || errors.Is(must, errEmpty) {
		return faulty(n.pos, must)
	}
	return faulty(n.pos, fmt.Errorf("%w, not %s", must, n))
}

type intValue[T ~int | ~int64] struct {
	p        *T
	min, max int64
	unit     string
}

func port(p *int) value                     { return integer(p, 0, 65535) }
func integer(p *int, min, max int64) value  { return &intValue[int]{p, min, max, ""} }
func millis(p *Milliseconds) value          { return &intValue[Milliseconds]{p, 0, maxMillis, " ms"} }
func (v *intValue[T]) String() string       { return strconv.FormatInt(int64(*v.p), 10) }
func (v *intValue[T]) must() error          { return fmt.Errorf("must be an %s", v.typ()) }
func (v *intValue[T]) inRange(i int64) bool { return v.min <= i && i <= v.max }
func (v *intValue[T]) typ() string {
	return fmt.Sprintf("integer from %d to %d%s", v.min, v.max, v.unit)
}
func (v *intValue[T]) set(i int64, ok bool) error {
	if !ok || !v.inRange(i) {
		return v.must()
	}
	*v.p = T(i)
	return nil
}

func (v *intValue[T]) check() error {
	if !v.inRange(int64(*v.p)) {
		return fmt.Errorf("%w, not %d", v.must(), int64(*v.p))
	}
	return nil
}

func (v *intValue[T]) fromNode(n *node, _ string) []fault {
	if err := v.set(n.num, n.kind == kindInteger); err != nil {
		return refuse(n, err)
	}
	return nil
}

// fromText rounds a fraction of a millisecond down, as upstream does
// (spec 03 5.3).
func (v *intValue[T]) fromText(s string) error {
	s = strings.TrimSpace(s)
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return v.set(i, true)
	}
	f, err := strconv.ParseFloat(s, 64)
	isTime := v.unit != "" && err == nil && f >= 0 && f <= maxMillis
	return v.set(int64(math.Floor(f)), isTime)
}

// enabledValue is a switch that is on unless something says otherwise.
type enabledValue struct{ disabled *bool }

func (v *enabledValue) String() string { return strconv.FormatBool(!*v.disabled) }
func (v *enabledValue) typ() string    { return "true or false" }
func (v *enabledValue) check() error   { return nil }

func (v *enabledValue) fromNode(n *node, dir string) []fault {
	enabled := !*v.disabled
	found := boolean(&enabled).fromNode(n, dir)
	*v.disabled = !enabled
	return found
}

func (v *enabledValue) fromText(s string) error {
	enabled := !*v.disabled
	err := boolean(&enabled).fromText(s)
	*v.disabled = !enabled
	return err
}

type boolValue struct{ p *bool }

func boolean(p *bool) value         { return &boolValue{p} }
func (v *boolValue) String() string { return strconv.FormatBool(*v.p) }
func (v *boolValue) typ() string    { return "true or false" }
func (v *boolValue) check() error   { return nil }
func (v *boolValue) fromNode(n *node, _ string) []fault {
	if n.kind != kindBool {
		return refuse(n, errors.New("must be true or false"))
	}
	*v.p = n.truth
	return nil
}

func (v *boolValue) fromText(s string) error {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "true", "1":
		*v.p = true
	case "false", "0":
		*v.p = false
	default:
		return errors.New("must be true or false")
	}
	return nil
}

// choiceValue takes one of a few words. Case and surrounding blanks do not
// matter (spec 03 5.3).
type choiceValue struct {
	p     *string
	words []string
}

func choice(p *string, words ...string) value { return &choiceValue{p, words} }
func (v *choiceValue) String() string         { return *v.p }
func (v *choiceValue) must() error            { return errors.New("must be " + v.typ()) }
func (v *choiceValue) check() error           { return v.fromText(*v.p) }
func (v *choiceValue) typ() string            { return choiceOf(v.words) }

func choiceOf(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func (v *choiceValue) fromText(s string) error {
	s = strings.ToLower(strings.TrimSpace(s))
	for _, w := range v.words {
		if s == w {
			*v.p = w
			return nil
		}
	}
	return v.must()
}

func (v *choiceValue) fromNode(n *node, _ string) []fault {
	if n.kind != kindString || v.fromText(n.text) != nil {
		return refuse(n, v.must())
	}
	return nil
}

// textValue is a string with a check that may also normalise it.
type textValue struct {
	p     *string
	clean func(string) (string, error)
	// isFile marks a file name, relative to the configuration file, and expands one
	// that may hold ${NAME}.
	isFile, expands bool
}

func text(p *string, clean func(string) (string, error)) value { return &textValue{p: p, clean: clean} }
func file(p *string) value                                     { return &textValue{p: p, clean: checkAny, isFile: true} }
func place(p *string) value                                    { return &textValue{p: p, clean: checkAny, isFile: true, expands: true} }
func (v *textValue) String() string                            { return *v.p }
func (v *textValue) check() error                              { return v.fromText(*v.p) }
func (v *textValue) typ() string {
	if v.isFile {
		return "file"
	}
	return "string"
}

func (v *textValue) fromText(s string) error {
	s, err := v.clean(s)
	if err != nil {
		return err
	}
	*v.p = s
	return nil
}

func (v *textValue) fromNode(n *node, dir string) []fault {
	if n.kind != kindString {
		return refuse(n, errors.New("must be a string"))
	}
	if err := v.fromText(n.text); err != nil {
		return refuse(n, err)
	}
	// What a name begins with may turn out to be an absolute path.
	if v.isFile && n.text != "" && !filepath.IsAbs(n.text) && !(v.expands && strings.HasPrefix(n.text, "${")) {
		*v.p = filepath.Join(dir, n.text)
	}
	return nil
}

// optionalValue is a value whose absence is valid.
type optionalValue struct {
	value
	absent bool
}

func optional(v value, absent bool) value { return &optionalValue{v, absent} }

func (v *optionalValue) check() error {
	if v.absent {
		return nil
	}
	return v.value.check()
}
