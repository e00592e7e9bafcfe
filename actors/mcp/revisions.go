package mcp

import "slices"

// Protocol revisions. A revision opens either with initialize (legacy) or with
// nothing at all (modern, stateless); nothing in the broker assumes that a
// session begins with initialize.
const (
	Revision20241105 = "2024-11-05"
	Revision20250326 = "2025-03-26"
	Revision20250618 = "2025-06-18"
	Revision20251125 = "2025-11-25"
)

// Revisions lists those this broker knows, oldest first.
func Revisions() []string {
	return []string{Revision20241105, Revision20250326, Revision20250618, Revision20251125}
}

// KnownRevision reports a value acceptable in the MCP-Protocol-Version header.
func KnownRevision(version string) bool {
	return slices.Contains(Revisions(), version)
}

// AllowsBatch reports the one revision in which a client may send batches.
func AllowsBatch(version string) bool { return version == Revision20250326 }

// MaxBatch is how many messages one batch may hold.
const MaxBatch = 50
