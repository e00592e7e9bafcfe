package session

import "testing"

// Spec 05 1.3, rule 1: clients that know a revision without initialize ask for it
// first. Until it is served the broker says no itself: a provider that answered
// would be of that era for all clients of its slot.
func TestDiscoveryIsRefused(t *testing.T) {
	m := joined(t, Config{})
	m.expect("asked", m.frame(&sink{"x"}, `{"id":1,"method":"server\/discover"}`),
		`x: reply {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found: server/discover. `+
			`Open with initialize; the newest revision served here is 2025-11-25"}}`)
}
