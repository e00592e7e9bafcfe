package config

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// checkCommand refuses a whole command line: there is no shell to take it apart. A
// blank may be part of a path that exists, or will.
func checkCommand(s string) (string, error) {
	s, err := checkNotEmpty(s)
	if err != nil {
		return "", err
	}
	program, rest, blank := strings.Cut(strings.TrimSpace(s), " ")
	if !blank || strings.Contains(program, "${") || exists(s) || strings.ContainsAny(program, `/\`) && !exists(program) {
		return s, nil
	}
	return "", fmt.Errorf(`must be one program without its arguments (command = %q, args = %s)`, program, quotedList(strings.Fields(rest)))
}

// exists tells whether a command is there, as a path or on the PATH.
func exists(command string) bool {
	if _, err := os.Stat(command); err == nil {
		return true
	}
	_, err := exec.LookPath(command)
	return err == nil
}

func quotedList(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = fmt.Sprintf("%q", word)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
