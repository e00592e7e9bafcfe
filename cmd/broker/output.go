package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// printJSON writes a value as it was sent, as one line.
func printJSON(w io.Writer, raw json.RawMessage) error {
	var line bytes.Buffer
	if err := json.Compact(&line, raw); err != nil {
		return &refusedError{text: "The answer is not JSON: " + err.Error()}
	}
	line.WriteByte('\n')
	text := line.Bytes()
	if isTerminal(w) {
		text = escapeControls(text)
	}
	_, err := w.Write(text)
	return err
}

// escapeControls writes the control and format characters that JSON lets stand in
// a string as escapes. Some terminals act on them.
func escapeControls(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for _, r := range string(text) {
		if r == '\n' || !unprintable(r) {
			out = utf8.AppendRune(out, r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			out = fmt.Appendf(out, `\u%04x`, unit)
		}
	}
	return out
}

// compact leaves out the space between the tokens of a value.
func compact(raw json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

// table aligns rows in columns; the first row is the head.
type table [][]string

func (t *table) add(cells ...string) { *t = append(*t, cells) }

// write leaves two spaces between columns and none at the end of a line. Cells
// may hold names that peers chose.
func (t table) write(w io.Writer) {
	var widths []int
	for _, row := range t {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			row[i] = oneLine(cell)
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	for _, row := range t {
		var b strings.Builder
		for i, cell := range row {
			b.WriteString(cell)
			b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}

// age writes how long something has lasted, to two units.
func age(d time.Duration) string {
	seconds := int64(d / time.Second)
	switch {
	case seconds < 60:
		return fmt.Sprintf("%ds", seconds)
	case seconds < 3600:
		return fmt.Sprintf("%dm%02ds", seconds/60, seconds%60)
	case seconds < 86400:
		return fmt.Sprintf("%dh%02dm", seconds/3600, seconds/60%60)
	}
	return fmt.Sprintf("%dd%02dh", seconds/86400, seconds/3600%24)
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + one + "s"
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// safeText keeps what a peer wrote from driving the operator's terminal. Lines
// and tabs stay, and the joiners of scripts and emoji.
func safeText(s string) string {
	const zeroWidthNonJoiner, zeroWidthJoiner = '\u200c', '\u200d'
	var b strings.Builder
	for _, r := range s {
		if unprintable(r) && r != '\n' && r != '\t' && r != zeroWidthNonJoiner && r != zeroWidthJoiner {
			q := strconv.QuoteRune(r)
			b.WriteString(q[1 : len(q)-1])
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// isTerminal tells whether somebody watches w.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// jsonMember is one member of an object, in its place.
type jsonMember struct {
	key   string
	value json.RawMessage
}

// members returns those of an object in the order they were sent, nil for what is
// no object.
func members(raw json.RawMessage) []jsonMember {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	var list []jsonMember
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil
		}
		list = append(list, jsonMember{key.(string), value})
	}
	return list
}
