// Package firmware tests the device library from outside: the programs and images
// that are built from it against a real broker, and against servers that do to it
// what no broker would.
package firmware

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"mcpbroker/firmware/firmwaretest"
	"mcpbroker/internal/leak"
)

// patience bounds every wait for another process. Only a failing test uses it
// up.
const patience = 40 * time.Second

// scratch holds what the tests build for themselves.
var scratch string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(inScratch(m))
}

func inScratch(m *testing.M) int {
	dir, err := os.MkdirTemp("", "firmware-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	scratch = dir
	return leak.Run(m)
}

func require(t *testing.T, program, debianPackage string) {
	t.Helper()
	firmwaretest.Require(t, program, debianPackage)
}

func missing(t *testing.T, format string, args ...any) {
	t.Helper()
	firmwaretest.Missing(t, format, args...)
}

func build(t *testing.T, target string) {
	t.Helper()
	firmwaretest.Make(t, target)
}

// hostTool returns the path of a program for this machine, built with sanitizers.
func hostTool(t *testing.T, name string) string {
	t.Helper()
	build(t, "samples-checked")
	return filepath.Join(firmwaretest.Dir(t), "build", "host-checked", name)
}

// brokerBinary builds the broker's command once, with the race detector if the
// test has it.
var brokerBinary = sync.OnceValues(func() (string, error) {
	binary := filepath.Join(scratch, "broker")
	args := []string{"build", "-o", binary}
	if raceEnabled() {
		args = append(args, "-race")
	}
	if out, err := exec.Command("go", append(args, "mcpbroker/cmd/broker")...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the broker: %w\n%s", err, out)
	}
	return binary, nil
})

func raceEnabled() bool {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return false
	}
	for _, s := range info.Settings {
		if s.Key == "-race" {
			return s.Value == "true"
		}
	}
	return false
}
