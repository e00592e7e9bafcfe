// Command broker runs an MCP broker: many MCP servers behind one host and one
// port.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(newProgram().run(context.Background(), os.Args))
}
