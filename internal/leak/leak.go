// Package leak looks for goroutines that the tests of a package leave behind. It is for
// tests only.
package leak

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is for the goroutines of a busy machine that are on their way out. Only a
// leak uses it up.
const patience = 30 * time.Second

// Main runs the tests of a package, for its TestMain, and ends the process.
func Main(m *testing.M) { os.Exit(Run(m)) }

// Run runs the tests of a package and returns the code to exit with, which is not 0 if
// they leave a goroutine behind.
func Run(m *testing.M) int {
	code := m.Run()
	if code != 0 {
		return code // a test that fails may well leave something
	}
	if err := find(patience); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// find returns what is still there after so long. goleak alone waits half a second.
func find(patience time.Duration) error {
	late := time.Now().Add(patience)
	for {
		err := goleak.Find()
		if err == nil || time.Now().After(late) {
			return err
		}
	}
}
