package config

import (
	"fmt"
	"strings"
)

// Problem is one thing wrong with the configuration.
type Problem struct {
	File    string // empty for the environment and flags
	Line    int    // from 1; 0 when unknown
	Column  int    // from 1, in characters
	Message string
}

// String is the problem on one line, as file:line:column: message.
func (p Problem) String() string {
	switch {
	case p.File == "":
		return p.Message
	case p.Line == 0:
		return p.File + ": " + p.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
}

// Error holds every problem found, those of the file first and in its order.
type Error struct {
	Problems []Problem
}

// Error has one line for each problem.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

func asError(found []Problem) error {
	if len(found) == 0 {
		return nil
	}
	return &Error{Problems: found}
}

// FileError says that the configuration file could not be read. The broker
// must not start without it (spec 03 5.1).
type FileError struct {
	Path   string
	Detail string
	Err    error // may be nil
	// Named: the command line named it, not the environment or the place.
	Named bool
	// Again: a running broker was to read it once more.
	Again bool
}

func (e *FileError) Error() string {
	text := fmt.Sprintf("Cannot use the config file at %s: %s.", e.Path, e.Detail)
	switch {
	case e.Again:
		return text + " Fix the file."
	case e.Named:
		return text + " The broker does not start without the security settings this file may hold: fix the file, or name another one."
	}
	return text + " The broker does not start without the security settings this file may hold: fix the file, or name another one with " + EnvConfig + "."
}

// Unwrap returns the underlying error of the file system.
func (e *FileError) Unwrap() error { return e.Err }
