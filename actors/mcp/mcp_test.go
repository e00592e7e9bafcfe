package mcp

import (
	"testing"

	"mcpbroker/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// Answers never come here; of notifications only what a newer one makes
// worthless is coalesced, and only progress and log messages may be dropped.
func TestNoteClass(t *testing.T) {
	const uri = `"file:///a"`
	for _, c := range []struct {
		method, uri string
		class       Class
		key         string
	}{
		{"notifications/progress", "", Droppable, ""},
		{"notifications/message", "", Droppable, ""},
		{"notifications/resources/updated", uri, Coalesced, "notifications/resources/updated" + uri},
		{"notifications/resources/updated", "", Coalesced, "notifications/resources/updated"},
		{"notifications/tools/list_changed", uri, Coalesced, "notifications/tools/list_changed"},
		{"notifications/prompts/list_changed", "", Coalesced, "notifications/prompts/list_changed"},
		{"notifications/resources/list_changed", "", Coalesced, "notifications/resources/list_changed"},
		{"notifications/cancelled", "", Required, ""},
		{"notifications/initialized", "", Required, ""},
		{"notifications/x-unknown", "", Required, ""},
		{"notifications/Progress", "", Required, ""},
		{"", "", Required, ""},
	} {
		class, key := NoteClass([]byte(c.method), []byte(c.uri))
		if class != c.class || key != c.key {
			t.Errorf("NoteClass(%q, %q) = %d, %q, want %d, %q", c.method, c.uri, class, key, c.class, c.key)
		}
	}
	var zero Class
	if zero != Required {
		t.Error("the zero Class may be dropped")
	}
	_, a := NoteClass([]byte(ResourceUpdated), []byte(`"a"`))
	_, b := NoteClass([]byte(ResourceUpdated), []byte(`"b"`))
	if a == b {
		t.Error("updates of two resources have one key")
	}
}

func TestRevisions(t *testing.T) {
	for version, want := range map[string]struct{ known, batch bool }{
		"2024-11-05": {true, false}, "2025-03-26": {true, true}, "2025-06-18": {true, false}, "2025-11-25": {true, false},
		"": {}, "2099-01-01": {}, "2025-3-26": {}, "2025-03-26 ": {}, "garbage": {},
	} {
		if got := KnownRevision(version); got != want.known {
			t.Errorf("KnownRevision(%q) = %v", version, got)
		}
		if got := AllowsBatch(version); got != want.batch {
			t.Errorf("AllowsBatch(%q) = %v", version, got)
		}
	}
}
