// Package firmwaretest builds the device programs that tests run.
package firmwaretest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// Missing skips a test for want of something on this machine, with one line that
// says what. On CI (CI=true), where every test runs, it fails the test.
func Missing(t testing.TB, format string, args ...any) {
	t.Helper()
	what := fmt.Sprintf(format, args...)
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s: CI runs every test", what)
	}
	t.Skipf("%s: the test is skipped", what)
}

// Require needs a program of this Debian package.
func Require(t testing.TB, program, debianPackage string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		Missing(t, "%s is not installed (Debian package %s)", program, debianPackage)
	}
}

// Dir is the folder firmware of the checkout the test runs in.
func Dir(t testing.TB) string {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for dir := here; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, "firmware")
		}
		if dir == filepath.Dir(dir) {
			t.Fatalf("%s is not inside of a checkout", here)
		}
	}
}

// built remembers what came of each target in this process.
var built struct {
	mu      sync.Mutex
	results map[string]result
}

type result struct {
	output string
	err    error
}

// Make builds a target of firmware/Makefile, once in a process. Runs do not
// overlap, in this process or another: they share intermediate files. A target that
// cannot be built for want of a tool or of foreign sources says "skipped: ...", which
// skips the test.
func Make(t testing.TB, target string) {
	t.Helper()
	Require(t, "make", "make")
	if strings.HasPrefix(target, "fw-") {
		Require(t, "clang", "clang")
		Require(t, "ld.lld", "lld")
	} else {
		Require(t, "cc", "gcc")
	}
	r := once(Dir(t), target)
	if line := regexp.MustCompile(`(?m)^skipped: .*$`).FindString(r.output); line != "" {
		Missing(t, "make %s: %s", target, line)
	}
	if r.err != nil {
		t.Fatalf("make %s: %v\n%s", target, r.err, r.output)
	}
}

func once(dir, target string) result {
	built.mu.Lock()
	defer built.mu.Unlock()
	r, done := built.results[target]
	if !done {
		r = run(dir, target)
		if built.results == nil {
			built.results = map[string]result{}
		}
		built.results[target] = r
	}
	return r
}

func run(dir, target string) (r result) {
	if err := os.MkdirAll(filepath.Join(dir, "build"), 0o755); err != nil {
		return result{err: err}
	}
	lock, err := os.OpenFile(filepath.Join(dir, "build", ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return result{err: fmt.Errorf("lock the build: %w", err)}
	}
	defer func() { r.err = errors.Join(r.err, lock.Close()) }() // and with it the lock
	if err := exclusive(lock); err != nil {
		return result{err: fmt.Errorf("lock the build: %w", err)}
	}
	cmd := exec.Command("make", "-j2", target)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return result{string(out), err}
}
