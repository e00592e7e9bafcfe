package config

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// cutReference splits s at its first ${...}: what is in front, with "$${" replaced
// by the "${" it stands for, what is between the braces, and the rest.
func cutReference(s string) (before, reference, rest string, found bool, err error) {
	var text strings.Builder
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			return text.String() + s, "", "", false, nil
		}
		if i > 0 && s[i-1] == '$' {
			text.WriteString(s[:i-1] + "${")
			s = s[i+2:]
			continue
		}
		text.WriteString(s[:i])
		reference, rest, closed := strings.Cut(s[i+2:], "}")
		if !closed {
			return "", "", "", false, errUnclosed
		}
		return text.String(), reference, rest, true, nil
	}
}

var errUnclosed = errors.New(`"${" without "}"`)

// variableName is what a reference can name. Windows has names with parentheses.
var variableName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.()-]*$`)

// checkReferences looks at the form of the ${...} in a text. What is wrong with it no
// environment can mend.
func checkReferences(s string) error {
	for {
		_, reference, rest, found, err := cutReference(s)
		switch {
		case err != nil:
			return fmt.Errorf(`has %w; a literal "${" is written "$${"`, err)
		case !found:
			return nil
		}
		if err := checkReference(reference); err != nil {
			return err
		}
		s = rest
	}
}

func checkReference(reference string) error {
	if path, isFile := strings.CutPrefix(reference, "file:"); isFile {
		if path == "" {
			return errors.New(`has "${file:}", which names no file`)
		}
		return nil
	}
	switch name, _, _ := strings.Cut(reference, ":-"); {
	case name == "":
		return fmt.Errorf("has %s, which names no variable", quote("${"+reference+"}"))
	case !variableName.MatchString(name):
		return fmt.Errorf("has %s, and no variable can have that name; known are ${NAME}, ${NAME:-default} and ${file:PATH}", quote("${"+reference+"}"))
	}
	return nil
}

// references looks at all texts of a value that is going to be expanded.
func (d *decoder) references(full string, n *node) {
	switch n.kind {
	case kindString:
		if err := checkReferences(n.text); err != nil {
			d.problem(n.pos, "%s %v", label(full), err)
		}
	case kindArray:
		for _, item := range n.items {
			d.references(full, item)
		}
	case kindTable:
		for _, m := range n.members {
			d.references(full+"."+m.name, m.value)
		}
	}
}

// texter is a value with texts that are going to be expanded.
type texter interface{ texts() []string }

func (v *textValue) texts() []string { return []string{*v.p} }
func (v *listValue) texts() []string { return *v.p }
func (v *mapValue) texts() []string  { return slices.Collect(maps.Values(*v.p)) }

func (v *anyMapValue) texts() []string {
	var texts []string
	for _, value := range *v.p {
		switch value := value.(type) {
		case string:
			texts = append(texts, value)
		case []any:
			for _, item := range value {
				if text, ok := item.(string); ok {
					texts = append(texts, text)
				}
			}
		}
	}
	return texts
}

func (v *optionalValue) texts() []string {
	if inner, ok := v.value.(texter); ok {
		return inner.texts()
	}
	return nil
}

// checkTexts looks at the texts of a key that was set by hand.
func (k key) checkTexts() error {
	held, ok := k.value.(texter)
	if !ok || !k.expands {
		return nil
	}
	for _, text := range held.texts() {
		if err := checkReferences(text); err != nil {
			return err
		}
	}
	return nil
}
