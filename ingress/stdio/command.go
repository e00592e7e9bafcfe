package stdio

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"mcpbroker/actors/wire"
)

// notFound is what clients are told of a command that PATH does not lead to: neither
// where it was looked for, nor what its setting came to.
const notFound = "its command was not found"

// lookup finds the file of a command: a path as it is, relative to dir, a bare
// name in the PATH of env.
func lookup(command, dir string, env []string) (string, error) {
	switch {
	case command == "":
		return "", errors.New("its command is empty")
	case strings.ContainsAny(command, pathSeparators):
		return lookupFile(command, filepath.Join(base(dir, command), command))
	}
	path := getenv(env, "PATH")
	if path == "" {
		return "", confidential(notFound, "command %q was not found: the PATH of its environment is empty", command)
	}
	file, err := search(command, dir, path)
	if err == nil {
		return file, nil
	}
	if first, _, more := strings.Cut(command, " "); more {
		if _, other := search(first, dir, path); other == nil {
			err = confidential(notFound+": what follows its name has to be in args", "%w; %q was: put what follows it into args", err, first)
		}
	}
	return "", err
}

// lookupFile checks the file a command names by its path.
func lookupFile(command, path string) (string, error) {
	file, err := executable(path)
	switch {
	case err == nil:
		return file, nil
	case errors.Is(err, fs.ErrNotExist):
		return "", confidential("its command does not exist", "command %q does not exist", command)
	}
	err = cause(err)
	return "", confidential(fmt.Sprintf("its command cannot be run: %v", err), "command %q cannot be run: %w", command, err)
}

// search looks for a bare name. Empty elements of PATH, which mean the current
// directory, are left out.
func search(name, dir, path string) (string, error) {
	var unfit error
	for _, place := range filepath.SplitList(path) {
		if place == "" {
			continue
		}
		candidate := filepath.Join(base(dir, place), place, name)
		file, err := executable(candidate)
		if err == nil {
			return file, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && unfit == nil {
			unfit = fmt.Errorf("%s: %w", candidate, cause(err))
		}
	}
	if unfit != nil {
		return "", confidential(notFound, "command %q was not found in PATH (%s); it cannot be %w", name, path, unfit)
	}
	return "", confidential(notFound, "command %q was not found in PATH (%s)", name, path)
}

// confidential is an error with another text for clients.
func confidential(public, format string, args ...any) error {
	return &wire.Confidential{Err: fmt.Errorf(format, args...), Public: public}
}

// base is what a relative path is relative to.
func base(dir, path string) string {
	if filepath.IsAbs(path) {
		return ""
	}
	return dir
}

// getenv returns the last value of a variable, as a process would see it.
func getenv(env []string, key string) string {
	value := ""
	for _, entry := range env {
		if k, v, ok := strings.Cut(entry, "="); ok && sameVariable(k, key) {
			value = v
		}
	}
	return value
}

// cause is an error without the call and the path the file system puts before it.
func cause(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// startError says why a command that was found could not be started.
func startError(command string, err error) error {
	var inPath *exec.Error
	var call *os.SyscallError
	switch {
	case errors.As(err, &inPath):
		err = inPath.Err
	case errors.As(err, &call):
		err = call.Err
	default:
		err = cause(err)
	}
	hint := startHint(err)
	return confidential(fmt.Sprintf("its command could not be started: %v%s", err, hint), "command %q could not be started: %w%s", command, err, hint)
}
