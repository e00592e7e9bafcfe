package aggregate

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"testing"

	"mcpbroker/actors/wire"
	"mcpbroker/internal/leak"
)

// The test binary is the upstream of the tests that need one: with this variable
// it serves MCP on its standard input and output, once a byte has come from the
// address in it.
const childEnv = "AGGREGATE_TEST_CHILD"

func TestMain(m *testing.M) {
	gate := os.Getenv(childEnv)
	if gate == "" {
		leak.Main(m)
		return
	}
	c, err := net.Dial("tcp", gate)
	if err == nil {
		_, err = c.Read(make([]byte, 1))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	serveChild()
}

// serveChild has one tool, which says which process answers and what it was asked.
func serveChild() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		f, err := wire.Scan(lines.Bytes())
		if err != nil || !f.ID.Present() {
			continue
		}
		result := `{}`
		switch string(f.Method) {
		case "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"child","version":"1"}}`
		case "tools/list":
			result = `{"tools":[{"name":"who"}]}`
		case "tools/call":
			result = fmt.Sprintf(`{"pid":%d,"asked":%s}`, os.Getpid(), wire.Member(f.Raw(f.Params), "arguments"))
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", f.Raw(f.ID), result)
	}
}
