package introspection

import (
	"fmt"
	"strings"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// The tools, in the order of tools/list (spec 03 1.4).
const (
	toolInfo     = "broker_info"
	toolList     = "providers_list"
	toolStatus   = "provider_status"
	toolGuide    = "broker_guide"
	toolDiagnose = "broker_diagnose"

	toolInstances = "instances_list"
	toolInstance  = "instance_status"
	toolRestart   = "instance_restart"
)

// tool is a published tool.
type tool struct {
	name      string
	takes     *argument // nil: no arguments
	upstreams bool      // offered only while the broker keeps upstreams
	acts      bool      // does more than read
}

// argument is the one string a tool takes.
type argument struct {
	name     string
	required bool
	topics   bool // its values are the topics of the guide
}

var tools = []tool{
	{name: toolInfo},
	{name: toolList},
	{name: toolStatus, takes: &argument{name: "name", required: true}},
	{name: toolGuide, takes: &argument{name: "topic", topics: true}},
	{name: toolDiagnose, takes: &argument{name: "slot"}},
	{name: toolInstances, upstreams: true},
	{name: toolInstance, takes: &argument{name: "name", required: true}, upstreams: true},
	{name: toolRestart, takes: &argument{name: "name", required: true}, upstreams: true, acts: true},
}

func findTool(name string) *tool {
	for i := range tools {
		if tools[i].name == name {
			return &tools[i]
		}
	}
	return nil
}

// toolsCall calls a tool. A failure of the tool is a result with isError.
func (s *State) toolsCall(now time.Time, m *msg.ClientCall) {
	params := m.Frame.Raw(m.Frame.Params)
	name, _ := wire.Unquote(object(params, "name"))
	if name == "" {
		s.fail(m, wire.MissingName())
		return
	}
	arguments := object(params, "arguments")
	if uri, ok := s.strayURI(arguments); ok {
		s.fail(m, wire.InstanceNotFound(uri))
		return
	}
	called := findTool(name)
	if called == nil || called.upstreams && !s.upstreams {
		s.fail(m, wire.UnknownTool(name))
		return
	}
	value, complaint := s.argument(called, arguments)
	if complaint != "" {
		s.reply(m, textResult(complaint, true))
		return
	}
	s.call(now, m, called.name, value)
}

func (s *State) call(now time.Time, m *msg.ClientCall, name, value string) {
	switch name {
	case toolInfo:
		s.reply(m, jsonResult(s.info(now)))
	case toolList:
		s.ask(now, m, question{kind: askList})
	case toolStatus:
		s.ask(now, m, question{kind: askStatus, slot: value})
	case toolDiagnose:
		s.ask(now, m, question{kind: askDiagnosis, slot: value})
	case toolGuide:
		s.guide(m, value)
	case toolInstances:
		s.ask(now, m, question{kind: askInstances})
	case toolInstance:
		s.ask(now, m, question{kind: askInstance, slot: value})
	case toolRestart:
		s.ask(now, m, question{kind: askRestart, slot: value})
	}
}

// strayURI reports an argument "uri" that is set and names no resource: such a
// call is taken for one about a resource, whatever the tool (spec 03 1.3).
func (s *State) strayURI(arguments []byte) (string, bool) {
	raw := object(arguments, "uri")
	switch string(raw) {
	case "", "null", "false", `""`, "0", "-0":
		return "", false
	}
	uri, ok := wire.Unquote(raw)
	if !ok {
		return string(raw), true
	}
	return uri, !s.exists(uri)
}

// guide answers broker_guide.
func (s *State) guide(m *msg.ClientCall, topic string) {
	topic = strings.TrimSpace(topic)
	if topic == "" {
		topic = "index"
	}
	page, ok := s.page(topic)
	if !ok {
		s.reply(m, textResult(fmt.Sprintf("Unknown guide topic %s. Valid topics: %s. Call broker_guide without arguments for the index.",
			quote(topic), s.topicNames()), true))
		return
	}
	s.reply(m, textResult(page, false))
}

// page renders a page of the guide.
func (s *State) page(topic string) (string, bool) {
	if s.cfg.guide == nil || !s.knownTopic(topic) {
		return "", false
	}
	return s.cfg.guide(topic)
}

func (s *State) knownTopic(topic string) bool {
	for _, t := range s.cfg.topics {
		if t.Topic == topic {
			return true
		}
	}
	return false
}

func (s *State) topicNames() string {
	names := make([]string, len(s.cfg.topics))
	for i, t := range s.cfg.topics {
		names[i] = t.Topic
	}
	return strings.Join(names, ", ")
}

// quote writes a text between quotes as it was sent; JSON escapes it on the way.
func quote(text string) string { return `"` + text + `"` }

// textResult is a tool result of one text.
func textResult(text string, failed bool) []byte {
	b := wire.AppendString([]byte(`{"content":[{"type":"text","text":`), text)
	return fmt.Appendf(b, `}],"isError":%t}`, failed)
}

// jsonResult is the result of a tool that returns an object, as text and as it is.
func jsonResult(object []byte) []byte { return objectResult(object, false) }

func objectResult(object []byte, failed bool) []byte {
	b := make([]byte, 0, 2*len(object)+96)
	b = wire.AppendString(append(b, `{"content":[{"type":"text","text":`...), string(object))
	b = append(append(b, `}],"structuredContent":`...), object...)
	return fmt.Appendf(b, `,"isError":%t}`, failed)
}
