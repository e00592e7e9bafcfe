package wire

import (
	"testing"

	"mcpbroker/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }
