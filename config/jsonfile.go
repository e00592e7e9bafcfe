package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// parseJSON reads a document. Duplicate members are returned beside the tree,
// so that they are reported together with everything else.
func parseJSON(doc string) (*node, []fault, *syntaxError) {
	if i := firstInvalidUTF8(doc); i >= 0 {
		return nil, nil, &syntaxError{positionOf(i), "invalid UTF-8"}
	}
	var raw json.RawMessage
	if err := json.Unmarshal([]byte(doc), &raw); err != nil {
		return nil, nil, jsonError(err)
	}
	dec := json.NewDecoder(bytes.NewReader([]byte(doc)))
	dec.UseNumber()
	r := &jsonReader{dec: dec, doc: doc}
	n, err := r.value()
	if err != nil {
		return nil, nil, jsonError(err)
	}
	if n.kind != kindTable {
		return nil, nil, &syntaxError{n.pos, "the top-level value must be a JSON object"}
	}
	return n, r.duplicates, nil
}

func firstInvalidUTF8(s string) int {
	for i, r := range s {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				return i
			}
		}
	}
	return -1
}

func jsonError(err error) *syntaxError {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		// Offset counts the bytes read, the offending one included.
		return &syntaxError{positionOf(int(syntax.Offset) - 1), syntax.Error()}
	}
	return &syntaxError{text: err.Error()}
}

type jsonReader struct {
	dec        *json.Decoder
	doc        string
	duplicates []fault
}

// here is the place of the next token.
func (r *jsonReader) here() position {
	i := int(r.dec.InputOffset())
	for i < len(r.doc) && bytes.IndexByte([]byte(" \t\r\n,:"), r.doc[i]) >= 0 {
		i++
	}
	return positionOf(i)
}

func (r *jsonReader) value() (*node, error) {
	n := &node{pos: r.here()}
	token, err := r.dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		return n, r.contents(n, t)
	case string:
		n.kind, n.text = kindString, t
	case bool:
		n.kind, n.truth = kindBool, t
	case json.Number:
		n.kind, n.num, n.text = jsonNumber(t.String())
	}
	return n, nil
}

// jsonNumber takes 3e4 and 30000.0 for the integers they are: JSON has one
// kind of number.
func jsonNumber(s string) (kind, int64, string) {
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return kindInteger, i, s
	}
	f, err := strconv.ParseFloat(s, 64)
	if err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return kindInteger, int64(f), s
	}
	return kindFloat, 0, s
}

// contents reads an array or object up to its end.
func (r *jsonReader) contents(n *node, open json.Delim) error {
	n.kind = kindArray
	if open == '{' {
		n.kind = kindTable
	}
	seen := make(map[string]bool)
	for r.dec.More() {
		if err := r.element(n, seen); err != nil {
			return err
		}
	}
	_, err := r.dec.Token()
	return err
}

func (r *jsonReader) element(n *node, seen map[string]bool) error {
	if n.kind == kindArray {
		item, err := r.value()
		n.items = append(n.items, item)
		return err
	}
	pos := r.here()
	token, err := r.dec.Token()
	if err != nil {
		return err
	}
	name, _ := token.(string)
	value, err := r.value()
	if err != nil {
		return err
	}
	if seen[name] {
		r.duplicates = append(r.duplicates, fault{pos, fmt.Errorf("duplicate key %q", name)})
		return nil
	}
	seen[name] = true
	n.members = append(n.members, member{name, pos, value})
	return nil
}
