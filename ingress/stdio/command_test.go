//go:build unix

package stdio

import (
	"os"
	"syscall"
	"testing"

	"mcpbroker/actors/wire"
)

// Clients are told that a command cannot be run, and not where the broker looked for
// it or what its setting came to; logs and operators get the whole text.
func TestFailuresForClients(t *testing.T) {
	dir := t.TempDir()
	plain := dir + "/plain"
	if err := os.WriteFile(plain, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		command, path string
		want          string
	}{
		{"npx", dir + ":/does/not/exist", "its command was not found"},
		{"npx", "", "its command was not found"},
		{"plain", dir, "its command was not found"},
		{"server --token s3cret-value", "/bin", "its command was not found"},
		{"sh -c s3cret-value", "/bin", "its command was not found: what follows its name has to be in args"},
		{dir + "/nowhere", "", "its command does not exist"},
		{plain, "", "its command cannot be run: the file is not marked executable"},
		{"", "", "its command is empty"},
	} {
		_, err := lookup(c.command, "", []string{"PATH=" + c.path})
		if err == nil {
			t.Fatalf("%q was found in %q", c.command, c.path)
		}
		equal(t, c.command, wire.Public(err), c.want)
	}
	equal(t, "start", wire.Public(startError(plain, os.NewSyscallError("fork", syscall.EAGAIN))),
		"its command could not be started: resource temporarily unavailable (the limit of processes is reached)")
}
