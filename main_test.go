package mcpbroker_test

import (
	"os"
	"testing"

	"mcpbroker/internal/leak"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asChild {
		behave(os.Args[2:])
		os.Exit(0)
	}
	leak.Main(m)
}
