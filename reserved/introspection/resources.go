package introspection

import (
	"strings"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// The resources and templates (spec 03 1.5).
const (
	uriInfo      = "broker://info"
	uriProviders = "broker://providers"
	uriInstances = "broker://instances" // only while the broker keeps upstreams

	prefixProvider = "broker://providers/"
	prefixInstance = "broker://instances/"
	prefixGuide    = "broker://guide/"

	templateProvider = prefixProvider + "{name}"
	templateInstance = prefixInstance + "{name}" // only while the broker keeps upstreams
	templateGuide    = prefixGuide + "{topic}"

	mimeJSON     = "application/json"
	mimeMarkdown = "text/markdown"
)

// What wordings have to name; pages of the guide have titles of their own.
var (
	ownResources = []string{uriInfo, uriProviders, uriInstances}
	ownTemplates = []string{templateProvider, templateInstance, templateGuide}
)

// providerURI is where a slot is described, instanceURI where its upstream is.
func providerURI(slot string) string { return prefixProvider + wire.EncodeSlot(slot) }
func instanceURI(slot string) string { return prefixInstance + wire.EncodeSlot(slot) }

// variable returns the value of a template's one variable: a run without a slash
// that is not empty, percent-decoded.
func variable(uri, prefix string) (string, bool) {
	rest, ok := strings.CutPrefix(uri, prefix)
	if !ok || rest == "" || strings.Contains(rest, "/") {
		return "", false
	}
	return wire.DecodeSlot(rest), true
}

// exists reports a URI that is a resource or matches a template; a slot of that
// name need not exist yet.
func (s *State) exists(uri string) bool {
	if uri == uriInfo || uri == uriProviders {
		return true
	}
	if _, ok := variable(uri, prefixInstance); ok || uri == uriInstances {
		return s.upstreams
	}
	if topic, ok := variable(uri, prefixGuide); ok {
		return s.knownTopic(topic)
	}
	_, ok := variable(uri, prefixProvider)
	return ok
}

// uriOf is the params.uri of a request, "" where there is none to be used.
func uriOf(f *wire.Frame) string {
	if !f.URI.Present() {
		return ""
	}
	uri, _ := wire.Unquote(f.Raw(f.URI))
	return uri
}

// read answers resources/read. Every read is live.
func (s *State) read(now time.Time, m *msg.ClientCall) {
	uri := uriOf(&m.Frame)
	switch uri {
	case "":
		s.fail(m, wire.MissingURI())
		return
	case uriInfo:
		s.reply(m, contents(uri, mimeJSON, string(s.info(now))))
		return
	case uriProviders:
		s.ask(now, m, question{kind: askList, uri: uri})
		return
	}
	if slot, ok := variable(uri, prefixProvider); ok {
		s.ask(now, m, question{kind: askStatus, slot: slot, uri: uri})
		return
	}
	if s.upstreams && uri == uriInstances {
		s.ask(now, m, question{kind: askInstances, uri: uri})
		return
	}
	if slot, ok := variable(uri, prefixInstance); ok && s.upstreams {
		s.ask(now, m, question{kind: askInstance, slot: slot, uri: uri})
		return
	}
	if topic, ok := variable(uri, prefixGuide); ok {
		if page, ok := s.page(topic); ok {
			s.reply(m, contents(prefixGuide+topic, mimeMarkdown, page))
			return
		}
	}
	s.fail(m, wire.ResourceNotFound(uri))
}

// contents is the result of a read.
func contents(uri, mime, text string) []byte {
	b := make([]byte, 0, len(text)+len(text)/8+96)
	b = wire.AppendString(append(b, `{"contents":[{"uri":`...), uri)
	b = wire.AppendString(append(b, `,"mimeType":`...), mime)
	b = wire.AppendString(append(b, `,"text":`...), text)
	return append(b, "}]}"...)
}
