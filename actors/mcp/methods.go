package mcp

// Methods the broker itself reads, sends or answers.
const (
	Initialize  = "initialize"
	Discover    = "server/discover" // how a client finds a revision without initialize
	Initialized = "notifications/initialized"
	Ping        = "ping"
	ToolsCall   = "tools/call"
	Subscribe   = "resources/subscribe"
	Unsubscribe = "resources/unsubscribe"

	// Requests a server opens to its client.
	CreateMessage = "sampling/createMessage"
	Elicit        = "elicitation/create"
	ListRoots     = "roots/list"

	Cancelled       = "notifications/cancelled"
	Progress        = "notifications/progress"
	LogMessage      = "notifications/message"
	ResourceUpdated = "notifications/resources/updated"

	// The tunnel's own: a provider announces itself, and private broker traffic.
	Register     = "notifications/register"
	BrokerPrefix = "broker/"
	Telemetry    = "broker/telemetry"
)

// Class says what may happen to a frame whose reader is slow.
type Class uint8

const (
	// Required frames are never dropped: where one does not fit, the reader is
	// closed. Answers are of this class, and every notification not named below.
	Required Class = iota
	// Coalesced frames are replaced by a newer one of the same key.
	Coalesced
	// Droppable frames make room for newer ones: progress and log messages.
	Droppable
)

// NoteClass classifies a notification and gives its key for coalescing. uri is
// the raw params.uri, if any.
func NoteClass(method, uri []byte) (Class, string) {
	switch string(method) {
	case Progress, LogMessage:
		return Droppable, ""
	case ResourceUpdated:
		return Coalesced, ResourceUpdated + string(uri)
	case "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed":
		return Coalesced, string(method)
	}
	return Required, ""
}
