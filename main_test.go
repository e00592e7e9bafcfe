package mcpbroker_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asChild {
		behave(os.Args[2:])
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}
