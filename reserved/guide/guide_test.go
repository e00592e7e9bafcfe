package guide_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbroker/reserved/diagnosis"
	"mcpbroker/reserved/guide"
)

func defaults() guide.Config {
	return guide.Config{
		Name: "mcp-broker", Version: "1.2.3", Scheme: "http", Authority: "localhost:3000",
		Paths: guide.Paths{Provider: "/provider", Providers: "/providers", Client: "/", MCP: "/mcp", SSE: "/sse", Messages: "/messages"},
	}
}

// Spec 03 1.4: the topics in their order; each is a page with its title, small
// enough to be read whole.
func TestTopics(t *testing.T) {
	var names []string
	for _, topic := range guide.Topics() {
		names = append(names, topic.Topic)
		if want := "broker://guide/" + topic.Topic; topic.URI != want {
			t.Errorf("uri %q, want %q", topic.URI, want)
		}
		if topic.Summary == "" || strings.Contains(topic.Summary, "\n") {
			t.Errorf("%s: the summary is %q", topic.Topic, topic.Summary)
		}
		page, ok := guide.Page(topic.Topic, defaults())
		if !ok {
			t.Fatalf("there is no page %q", topic.Topic)
		}
		if title, _, _ := strings.Cut(page, "\n"); title != "# "+topic.Title {
			t.Errorf("%s begins with %q, want its title %q", topic.Topic, title, topic.Title)
		}
		if len(page) > 16<<10 {
			t.Errorf("%s has %d bytes, more than 16 KiB", topic.Topic, len(page))
		}
	}
	want := []string{"index", "publish-provider", "connect-client", "host-config", "deploy", "troubleshooting"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("topics (-want +got):\n%s", diff)
	}
	for _, none := range []string{"", "Index", "index.md", "../guide", "pages/index"} {
		if page, ok := guide.Page(none, defaults()); ok || page != "" {
			t.Errorf("Page(%q) = %d bytes, %t", none, len(page), ok)
		}
	}
}

// Spec 03 2.1: each page ends with what is in effect, row for row.
func TestEffectiveConfiguration(t *testing.T) {
	const plain = `

---

## This broker, as it runs now

The text above uses the default address and paths; these are in effect.

| what | value |
|---|---|
| broker | ` + "`mcp-broker` `1.2.3`" + ` |
| listening | ` + "`http://localhost:3000`" + ` |
| provider, dedicated socket | ` + "`ws://localhost:3000/provider/<slot>`" + ` |
| provider, shared socket | ` + "`ws://localhost:3000/providers`" + ` |
| client, Streamable HTTP | ` + "`http://localhost:3000/<slot>/mcp`" + ` |
| client, legacy SSE | ` + "`http://localhost:3000/<slot>/sse` + `http://localhost:3000/<slot>/messages`" + ` |
| client, raw WebSocket | ` + "`ws://localhost:3000/<slot>`" + ` |

For what is connected and what is wrong right now, call ` + "`broker_diagnose()` on the slot `_broker`." + `
`
	for _, topic := range guide.Topics() {
		page, _ := guide.Page(topic.Topic, defaults())
		if !strings.HasSuffix(page, plain) || strings.HasSuffix(strings.TrimSuffix(page, plain), "\n") {
			t.Errorf("%s ends with %q", topic.Topic, page[max(0, len(page)-len(plain)-20):])
		}
	}

	c := guide.Config{
		Name: "plant `7`|\n", Version: "2", Scheme: "https", Authority: "b.example:8443",
		Paths: guide.Paths{Provider: "/in", Providers: "/shared", Client: "/", MCP: "/rpc", SSE: "/events", Messages: "/post"},
	}
	page, _ := guide.Page("index", c)
	_, table, _ := strings.Cut(page, "|---|---|\n| broker |")
	const want = " `plant '7'\\| ` `2` |\n" +
		"| listening | `https://b.example:8443`; TLS is on, so providers use `wss` and the origins of pages begin with `https` |\n" +
		"| provider, dedicated socket | `wss://b.example:8443/in/<slot>` |\n" +
		"| provider, shared socket | `wss://b.example:8443/shared` |\n" +
		"| client, Streamable HTTP | `https://b.example:8443/<slot>/rpc` |\n" +
		"| client, legacy SSE | `https://b.example:8443/<slot>/events` + `https://b.example:8443/<slot>/post` |\n" +
		"| client, raw WebSocket | `wss://b.example:8443/<slot>` |\n"
	if got, _, _ := strings.Cut(table, "\nFor what"); got != want {
		t.Errorf("(-want +got):\n%s", cmp.Diff(want, got))
	}
}

// The convention of llms.txt: a title, a summary in a quote, text, and lists of
// links.
func TestLLMs(t *testing.T) {
	c := defaults()
	c.Name, c.Paths.MCP = "plant\n7", "/rpc"
	text := guide.LLMs(c)
	if want := "# plant 7\n\n> A broker for the Model Context Protocol"; !strings.HasPrefix(text, want) {
		t.Errorf("it begins with %q", text[:80])
	}
	first, _ := guide.Page(guide.Index, c)
	if !strings.HasSuffix(text, "\n\n"+first) {
		t.Error("it does not end with the first page")
	}
	for _, topic := range guide.Topics() {
		if want := "\n- [" + topic.Title + "](" + topic.URI + "): " + topic.Summary + "\n"; !strings.Contains(text, want) {
			t.Errorf("it lacks %q", want)
		}
	}
	for _, want := range []string{"\n## Guide\n", "`http://localhost:3000/_broker/rpc`", "\nbroker guide publish-provider --url http://localhost:3000\n", `"uri":"broker://guide/publish-provider"`} {
		if !strings.Contains(text, want) {
			t.Errorf("it lacks %q", want)
		}
	}
}

// What the diagnosis refers to exists.
func TestDiagnosisSeesPages(t *testing.T) {
	uris := map[string]bool{}
	for _, topic := range guide.Topics() {
		uris[topic.URI] = true
	}
	for _, uri := range diagnosis.Diagnose(diagnosis.Facts{}, "").SeeAlso {
		if !uris[uri] {
			t.Errorf("seeAlso names %s, which is no page", uri)
		}
	}
}
