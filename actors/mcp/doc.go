// Package mcp knows the Model Context Protocol: method names, revisions and how
// a message of each kind may be treated by a slow reader. It holds no state.
package mcp
