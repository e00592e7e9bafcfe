// Package bundle turns a signed .mcpb file into a command to run (spec 03 4.3,
// spec 05 section 7).
//
// A bundle is a ZIP archive with a manifest.json that says how to start the MCP
// server inside. Nothing of it is used before one of its signatures has been
// verified with the key the operator configured: a detached signature beside the
// file, or the block the packer appends to it. The file is read once; what was
// verified is what is unpacked. Everything about the archive is checked before the
// first byte is written, and it is written beside its place and moved there whole.
//
// The package starts no process and knows no actor.
package bundle
