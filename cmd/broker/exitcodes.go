package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
)

// Exit codes besides 0. docs/cli.md and the help text list them.
const (
	exitFailed      = 1   // a command line or configuration that makes no sense; a tool that failed; warnings; a check that failed
	exitErrors      = 2   // diagnose: errors found
	exitUnreachable = 3   // no broker answers
	exitRefused     = 4   // the broker answers, with an error or too late
	exitInterrupted = 130 // SIGINT or SIGTERM
)

// exitHelp lists the exit codes below the commands.
func exitHelp() string {
	rows := []struct {
		code int
		text string
	}{
		{0, "done; nothing to complain about"},
		{exitFailed, "the command line or the configuration makes no sense, or the start failed; call: the tool failed;\n         diagnose: warnings; doctor: a check failed; restart: the upstream did not come up"},
		{exitErrors, "diagnose: errors"},
		{exitUnreachable, "no broker answers at the address"},
		{exitRefused, "the broker refused the request, or its answer did not come in time"},
		{exitInterrupted, "interrupted while waiting for an answer"},
	}
	var b strings.Builder
	b.WriteString("\nEXIT CODES:\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "   %-3d   %s\n", r.code, r.text)
	}
	return b.String()
}

// unreachableError: at this URL no broker answers.
type unreachableError struct {
	url string
	why string
}

func (e *unreachableError) Error() string {
	return fmt.Sprintf("Cannot reach a broker at %s: %s. Start one with 'broker run', or name another with --url or %s.", e.url, e.why, envURL)
}

// ExitCode implements cli.ExitCoder.
func (e *unreachableError) ExitCode() int { return exitUnreachable }

// refusedError is an answer of the broker, or of a provider, that is not the one
// asked for.
type refusedError struct {
	text string
	code int    // of a JSON-RPC error, 0 without one
	next string // a sentence about what to do, may be empty
}

func (e *refusedError) Error() string {
	text := e.text
	if e.code != 0 {
		text = fmt.Sprintf("%s (%d)", text, e.code)
	}
	if e.next != "" {
		text += ". " + e.next
	}
	return text
}

// advise adds what to do to a refusal with this code.
func advise(err error, code int, next string) error {
	var refused *refusedError
	if !errors.As(err, &refused) || refused.code != code {
		return err
	}
	return &refusedError{text: refused.text, code: code, next: next}
}

// ExitCode implements cli.ExitCoder.
func (e *refusedError) ExitCode() int { return exitRefused }

// lateError is the cause of a context that --timeout ended.
type lateError struct{ after time.Duration }

func (e *lateError) Error() string { return fmt.Sprintf("no answer within %s (--timeout)", e.after) }

// errInterrupted is the cause of a context that a signal ended.
var errInterrupted = cli.Exit("interrupted", exitInterrupted)
