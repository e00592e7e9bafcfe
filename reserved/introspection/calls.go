package introspection

import (
	"bytes"
	"encoding/json"
	"time"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// clientCall answers one request (spec 03 1.3). Nothing requires initialize first.
func (s *State) clientCall(now time.Time, m *msg.ClientCall) {
	from := s.sessions.Get(m.Session)
	if from == nil {
		s.fail(m, wire.SessionClosed())
		return
	}
	switch string(m.Frame.Method) {
	case mcp.Initialize:
		s.initialize(m, from)
	case mcp.Ping:
		s.reply(m, empty)
	case "tools/list":
		s.reply(m, s.catalog(from).tools)
	case "resources/list":
		s.reply(m, s.catalog(from).resources)
	case "resources/templates/list":
		s.reply(m, s.catalog(from).templates)
	case mcp.ToolsCall:
		s.toolsCall(now, m)
	case "resources/read":
		s.read(now, m)
	case mcp.Subscribe, mcp.Unsubscribe:
		s.subscription(m, from)
	default:
		s.fail(m, wire.UnknownMethod(m.Frame.Method))
	}
}

var empty = []byte("{}")

// catalog is what a session is shown. One that sent no initialize is served as an
// unknown client.
func (s *State) catalog(from *member) *catalog {
	worded := from.Data.lists
	if worded == nil {
		worded = s.cfg.wordings.lists("", "", s.cfg.topics)
	}
	if s.upstreams {
		return &worded.full
	}
	return &worded.plain
}

type capability struct {
	Subscribe   bool `json:"subscribe,omitempty"`
	ListChanged bool `json:"listChanged"`
}

// initialized is the result of initialize (spec 03 1.2).
type initialized struct {
	ProtocolVersion string     `json:"protocolVersion"`
	ServerInfo      serverInfo `json:"serverInfo"`
	Capabilities    struct {
		Resources capability `json:"resources"`
		Tools     capability `json:"tools"`
	} `json:"capabilities"`
	Instructions string `json:"instructions,omitempty"`
	Meta         struct {
		Grammar string `json:"grammar"`
	} `json:"_meta"`
}

type serverInfo struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version"`
}

// initialize negotiates the revision and chooses the session's wording.
func (s *State) initialize(m *msg.ClientCall, from *member) {
	params := m.Frame.Raw(m.Frame.Params)
	about := object(params, "clientInfo")
	name, _ := wire.Unquote(object(about, "name"))
	version, _ := wire.Unquote(object(about, "version"))
	chosen := s.cfg.wordings.lists(name, version, s.cfg.topics)

	answer := initialized{
		ProtocolVersion: mcp.Revision20251125,
		ServerInfo:      serverInfo{Name: Slot, Title: chosen.title, Version: s.cfg.identity.Version},
		Instructions:    chosen.instructions,
	}
	if asked, ok := wire.Unquote(object(params, "protocolVersion")); ok && mcp.KnownRevision(asked) {
		answer.ProtocolVersion = asked
	}
	answer.Capabilities.Resources = capability{Subscribe: true, ListChanged: true}
	answer.Capabilities.Tools = capability{ListChanged: true}
	answer.Meta.Grammar = chosen.grammar
	s.reply(m, encode(answer))
	from.Data.lists = chosen
}

// object returns a member of a raw value that may be anything.
func object(raw []byte, name string) []byte {
	if len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	return wire.Member(raw, name)
}

// encode writes a value of this package as compact JSON.
func encode(value any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		panic(err) // the types of this package can all be encoded
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// response is the answer to a raw id.
func response(id, result []byte) []byte {
	b := make([]byte, 0, len(id)+len(result)+40)
	b = append(append(b, `{"jsonrpc":"2.0","id":`...), id...)
	return append(append(append(b, `,"result":`...), result...), '}')
}
