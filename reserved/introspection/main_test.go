package introspection

import (
	"bufio"
	"fmt"
	"os"
	"testing"

	"mcpbroker/actors/wire"
	"mcpbroker/internal/leak"
)

// The test binary is the upstream of the tests that need one: with this variable
// it serves MCP on its standard input and output, or ends at once.
const childEnv = "INTROSPECTION_TEST_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childEnv) {
	case "":
		leak.Main(m)
	case "serve":
		fmt.Fprintln(os.Stderr, "serving")
		serve()
	default:
		fmt.Fprintln(os.Stderr, "no such database")
		os.Exit(3)
	}
}

func serve() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		f, err := wire.Scan(lines.Bytes())
		if err != nil || !f.ID.Present() {
			continue
		}
		result := `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"child","version":"1"}}`
		if string(f.Method) != "initialize" {
			result = `{"tools":[],"content":[{"type":"text","text":"fine"}]}`
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", f.Raw(f.ID), result)
	}
}
