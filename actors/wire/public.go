package wire

import (
	"errors"
	"strings"
)

// Confidential is an error with a text of its own for clients: the whole one, for
// logs and operators, holds what is none of their business, such as the search path of
// the broker.
type Confidential struct {
	Err    error
	Public string
}

func (e *Confidential) Error() string { return e.Err.Error() }

// Unwrap returns the whole error.
func (e *Confidential) Unwrap() error { return e.Err }

// Public is what clients are told of an error: a Confidential in it is replaced by its
// public text, an absolute path by its last element, and a URL loses its credentials and
// its query. Errors quote what a child or a file system has said, so this is a net
// behind texts that are made with care, and no reason to make them without.
func Public(err error) string {
	text := err.Error()
	var c *Confidential
	if errors.As(err, &c) {
		text = strings.Replace(text, c.Error(), c.Public, 1)
	}
	return withoutPlaces(text)
}

// withoutPlaces shortens the paths and URLs in a text.
func withoutPlaces(text string) string {
	if !strings.ContainsAny(text, `/\`) {
		return text
	}
	var b strings.Builder
	done := 0
	for i := 0; i < len(text); {
		length, short := place(text, i)
		if length == 0 {
			i++
			continue
		}
		b.WriteString(text[done:i])
		b.WriteString(short)
		i += length
		done = i
	}
	b.WriteString(text[done:])
	return b.String()
}

// place is the length of the path or URL that begins at i, and its short form; 0 where
// none does.
func place(text string, i int) (length int, short string) {
	if i > 0 && !strings.ContainsRune(beforePlace, rune(text[i-1])) {
		return 0, ""
	}
	rest := text[i:]
	if n := schemeLength(rest); n > 0 {
		return shortURL(rest, n)
	}
	separators, root := "/", 0
	switch {
	case drive(rest):
		separators, root = `/\`, 2
	case rest[0] != '/':
		return 0, ""
	}
	length = root + extent(text, i, rest[root:])
	path := strings.TrimRight(rest[:length], separators)
	last := strings.LastIndexAny(path, separators)
	if last <= root { // one element below the root says nothing
		return length, rest[:length]
	}
	return length, "..." + rest[last:length]
}

// What may stand before a path in a text, and what ends one.
const (
	beforePlace = " \t\r\n\"'`([{<>,;:=|"
	afterPlace  = " \t\r\n\"'`)]}<>,;:|"
)

// extent is how far a path goes whose text is rest. One in quotes goes to its closing
// quote, and may hold blanks.
func extent(text string, i int, rest string) int {
	ends := afterPlace
	if i > 0 && strings.IndexByte("\"'`", text[i-1]) >= 0 && strings.IndexByte(rest, text[i-1]) >= 0 {
		ends = text[i-1 : i]
	}
	if n := strings.IndexAny(rest, ends); n >= 0 {
		return n
	}
	return len(rest)
}

// drive reports that a path begins as on Windows.
func drive(s string) bool {
	return len(s) > 2 && letter(s[0]) && s[1] == ':' && (s[2] == '\\' || s[2] == '/')
}

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// schemeLength is the length of "scheme://" at the start of s, or 0. That of a file is
// followed by a path, which is looked at as such.
func schemeLength(s string) int {
	n := 0
	for n < len(s) && (letter(s[n]) || n > 0 && strings.IndexByte("0123456789+-.", s[n]) >= 0) {
		n++
	}
	if n < 2 || !strings.HasPrefix(s[n:], "://") || strings.EqualFold(s[:n], "file") {
		return 0
	}
	return n + len("://")
}

// shortURL takes user, password, query and fragment out of a URL.
func shortURL(s string, scheme int) (length int, short string) {
	length = len(s)
	if n := strings.IndexAny(s, " \t\r\n\"'`)]}<>,;|"); n >= 0 {
		length = n
	}
	length = max(scheme, len(strings.TrimRight(s[:length], ".:")))
	shown, _, hidden := cutAny(s[scheme:length], "?#")
	authority, path, slash := strings.Cut(shown, "/")
	shown = authority[strings.LastIndexByte(authority, '@')+1:]
	if slash {
		shown += "/" + path
	}
	if hidden {
		shown += "?***"
	}
	return length, s[:scheme] + shown
}

func cutAny(s, any string) (before, after string, found bool) {
	if i := strings.IndexAny(s, any); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}
