// Package stdio runs MCP servers as child processes: one JSON-RPC message a line
// on their stdin and stdout, stderr for their log (spec 03 4.1, spec 06).
//
// Each child is one connection of its upstream. It is started without a shell, in
// a process group that is ended as a whole: by the broker when it stops or when
// the child is of no use any more, and by a guard when the broker itself was
// killed. Lines have a bound, stderr is always read, and a child that does not
// read its stdin is ended.
package stdio
