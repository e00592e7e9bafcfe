// Package config turns one configuration file, the MCP_BROKER_* environment
// and command-line flags into a single validated value.
//
// Flags win over the environment, the environment wins over the file, the file
// wins over the defaults; an empty variable counts as unset (spec 03 5.1). A
// file is TOML, or JSON with the same keys when its name ends in .json.
// Anything the broker does not understand refuses the start: unknown keys,
// wrong case, wrong types, duplicate keys. All problems are reported at once,
// one per line, with their position.
package config
