package main_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbroker/brokertest"
)

// revisions are those every slot speaks.
var revisions = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}

// brokerTools come first in the list of _broker, in this order (spec 03 1.4).
var brokerTools = []string{"broker_info", "providers_list", "provider_status", "broker_guide", "broker_diagnose"}

// aggregateReady is in the log once _all has the tools of _broker.
const aggregateReady = `provider "_broker" joined "_all" with `

func expectNames(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// expectFirst finds that a list begins with these names.
func expectFirst(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	expectNames(t, what, got[:min(len(got), len(want))], want...)
}

// through is a tool's name in _all.
func through(slot string, tools ...string) []string {
	var named []string
	for _, tool := range tools {
		named = append(named, slot+"-"+tool)
	}
	return named
}

// Spec 03 10.2: the reserved slots answer in the revision a client asks for.
func TestTypeScriptReservedRevisions(t *testing.T) {
	b := startBroker(t)
	b.await(b.stderr, aggregateReady)
	x := startExplorer(t)
	for _, revision := range revisions {
		for slot, capabilities := range map[string]object{
			"_broker": {"resources": object{"subscribe": true, "listChanged": true}, "tools": object{"listChanged": true}},
			"_all":    {"prompts": object{"listChanged": true}, "tools": object{"listChanged": true}},
		} {
			for name, where := range map[string]object{"http": {"url": b.mcp(slot)}, "sse": {"url": b.sse(slot), "sse": true}} {
				where["revision"] = revision
				want := object{"server": slot, "revision": revision, "capabilities": capabilities}
				if diff := cmp.Diff(want, x.result("connect", where)); diff != "" {
					t.Errorf("%s over %s (-want +got):\n%s", slot, name, diff)
				}
				if x.result("ping", nil); len(x.names("listTools", "tools", "name")) < 5 {
					t.Errorf("%s over %s, %s: no tools", slot, name, revision)
				}
			}
		}
	}
}

// Spec 03 section 1: all there is on _broker, with the official client, which
// checks every answer against the schemas of MCP and of the tools.
func TestTypeScriptIntrospection(t *testing.T) {
	b := startBroker(t)
	x := startExplorer(t)
	x.result("connect", object{"url": b.mcp("_broker")})

	expectFirst(t, "tools", x.names("listTools", "tools", "name"), brokerTools...)
	topics := []string{"index", "publish-provider", "connect-client", "host-config", "deploy", "troubleshooting"}
	pages := []string{}
	for _, topic := range topics {
		pages = append(pages, "broker://guide/"+topic)
	}
	uris := x.names("listResources", "resources", "uri")
	expectFirst(t, "resources", uris, append([]string{"broker://info", "broker://providers"}, pages...)...)
	expectFirst(t, "templates", x.names("listResourceTemplates", "resourceTemplates", "uriTemplate"), "broker://providers/{name}", "broker://guide/{topic}")

	for _, uri := range uris {
		contents, _ := x.result("readResource", object{"uri": uri})["contents"].([]any)
		if len(contents) != 1 || contents[0].(object)["uri"] != uri || contents[0].(object)["text"] == "" {
			t.Errorf("%s contains %v", uri, contents)
		}
	}
	info := x.result("callTool", object{"name": "broker_info"})
	if got, _ := info["structuredContent"].(object); got["name"] != "mcp-broker" || fmt.Sprint(got["port"]) != b.port {
		t.Errorf("broker_info answers %v", info)
	}
	listed := x.result("callTool", object{"name": "providers_list"})["structuredContent"].(object)
	expectNames(t, "slots", names(listed, "providers", "name"), "_all", "_broker")
	status := x.result("callTool", object{"name": "provider_status", "arguments": object{"name": "ghost"}})
	if diff := cmp.Diff(object{"content": textContent(`Unknown provider: "ghost".`), "isError": true}, status); diff != "" {
		t.Errorf("an unknown slot (-want +got):\n%s", diff)
	}
	report := x.result("callTool", object{"name": "broker_diagnose"})["structuredContent"].(object)
	expectNames(t, "problems", names(report, "problems", "id"), "no-providers", "aggregate-empty")

	x.refused("readResource", object{"uri": "broker://providers/ghost"}, -32002, "MCP error -32002: Resource not found: broker://providers/ghost")
	x.refused("listPrompts", nil, -32601, "MCP error -32601: Method not found: prompts/list")
	x.refused("complete", object{"ref": object{"type": "ref/resource", "uri": "broker://guide/{topic}"}, "argument": object{"name": "topic", "value": "d"}},
		-32601, "MCP error -32601: Method not found: completion/complete")
	x.refused("setLoggingLevel", nil, -32601, "MCP error -32601: Method not found: logging/setLevel")
}

// Spec 03 1.6: a subscription to broker://providers hears of a provider that comes
// and goes, and what it then reads is how things are.
func TestTypeScriptSubscription(t *testing.T) {
	b := startBroker(t)
	x := startExplorer(t)
	x.result("connect", object{"url": b.mcp("_broker")})
	for _, uri := range []string{"broker://providers", "broker://providers/pump%201"} {
		x.result("subscribeResource", object{"uri": uri})
	}
	p := brokertest.Dial(t, b.direct("pump%201"), nil)
	await := func(connected string) {
		t.Helper()
		const uri = "broker://providers/pump%201"
		for {
			x.notified("notifications/resources/updated", object{"uri": uri})
			contents := x.result("readResource", object{"uri": uri})["contents"].([]any)
			if text := contents[0].(object)["text"].(string); strings.Contains(text, connected) {
				return
			}
		}
	}
	await(`"name":"pump 1","transport":"ws","connected":true,`)
	p.Close(1000, "")
	await(`"name":"pump 1","transport":"none","connected":false,`)
	x.heard = nil
	x.result("unsubscribeResource", object{"uri": "broker://providers/pump%201"})
	brokertest.Dial(t, b.direct("other"), nil)
	x.notified("notifications/resources/updated", object{"uri": "broker://providers"})
}

// Spec 03 section 3: all there is on _all, with the official client.
func TestTypeScriptAggregate(t *testing.T) {
	b := startBroker(t)
	x := startExplorer(t)
	x.result("connect", object{"url": b.mcp("_all")})
	// _broker joins as soon as it can: a client may come before.
	x.awaitTools(through("_broker", brokerTools...)...)
	startNode(t, "provider.mjs", "--aggregate", "direct", b.direct("pump-1"), "pump-1").expect(event{"event": "open", "slot": "pump-1"})
	x.awaitTools("pump-1-whoami")
	x.notified("notifications/prompts/list_changed", object{})

	if diff := cmp.Diff(object{"content": textContent("pump-1 by direct")}, x.result("callTool", object{"name": "pump-1-whoami"})); diff != "" {
		t.Errorf("a call through _all (-want +got):\n%s", diff)
	}
	status := x.result("callTool", object{"name": "_broker-provider_status", "arguments": object{"name": "pump-1"}})["structuredContent"].(object)
	if status["transport"] != "ws" || status["aggregate"] != true {
		t.Errorf("provider_status through _all answers %v", status)
	}
	expectNames(t, "prompts", x.names("listPrompts", "prompts", "name"))
	x.refused("callTool", object{"name": "pump-1-gone"}, -32602, "MCP error -32602: Unknown aggregated tool: pump-1-gone")
	x.refused("getPrompt", object{"name": "gone"}, -32602, "MCP error -32602: Unknown aggregated prompt: gone")
	for method, request := range map[string]string{
		"listResources": "resources/list", "listResourceTemplates": "resources/templates/list", "setLoggingLevel": "logging/setLevel",
	} {
		x.refused(method, nil, -32601, "MCP error -32601: Method not found: "+request)
	}
	x.refused("subscribeResource", object{"uri": "u"}, -32601, "MCP error -32601: Method not found: resources/subscribe")
	x.refused("complete", object{"ref": object{"type": "ref/prompt", "name": "p"}, "argument": object{"name": "a", "value": ""}},
		-32601, "MCP error -32601: Method not found: completion/complete")
}

// awaitTools lists the tools again with each notification, until these are there.
func (x *explorer) awaitTools(want ...string) {
	x.t.Helper()
	x.awaitList(func(got []string) bool {
		return !slices.ContainsFunc(want, func(name string) bool { return !slices.Contains(got, name) })
	})
}

// awaitNoTools waits until no tool of a slot is there.
func (x *explorer) awaitNoTools(slot string) {
	x.t.Helper()
	x.awaitList(func(got []string) bool {
		return !slices.ContainsFunc(got, func(name string) bool { return strings.HasPrefix(name, slot+"-") })
	})
}

func (x *explorer) awaitList(wanted func(names []string) bool) {
	x.t.Helper()
	for !wanted(x.names("listTools", "tools", "name")) {
		x.notified("notifications/tools/list_changed", object{})
	}
}

// Section 2 of the mission, F-09: a provider of the published SDK that asks for it
// is a member of _all, on both transports, and leaves with its connection. The
// shared socket asks again when it comes back; a provider that does not ask is no
// member, whoever held its slot before.
func TestProviderSDKJoinsAll(t *testing.T) {
	b := startBroker(t, "--port", freePort(t))
	x := startExplorer(t)
	x.result("connect", object{"url": b.mcp("_all")})
	direct := startNode(t, "provider.mjs", "--aggregate", "direct", b.direct("pump-1"), "pump-1")
	direct.expect(event{"event": "open", "slot": "pump-1"})
	shared := startNode(t, "provider.mjs", "--aggregate", "multiplex", b.multiplex(), "scene", "lamp")
	shared.expect(event{"event": "open", "slot": "scene"}, event{"event": "open", "slot": "lamp"})
	x.awaitTools("pump-1-whoami", "scene-whoami", "lamp-whoami")
	for slot, kind := range map[string]string{"pump-1": "direct", "scene": "multiplex", "lamp": "multiplex"} {
		if diff := cmp.Diff(object{"content": textContent(slot + " by " + kind)}, x.result("callTool", object{"name": slot + "-whoami"})); diff != "" {
			t.Errorf("slot %s (-want +got):\n%s", slot, diff)
		}
	}

	direct.tell("close pump-1")
	x.awaitNoTools("pump-1")
	stranger := startNode(t, "provider.mjs", "direct", b.direct("pump-1"), "pump-1")
	stranger.expect(event{"event": "open", "slot": "pump-1"})
	expectAnswer(t, newSession(t, b.mcp("pump-1")), servedBy("pump-1 by direct"))
	x.awaitNoTools("pump-1")
	x.refused("callTool", object{"name": "pump-1-whoami"}, -32602, "MCP error -32602: Unknown aggregated tool: pump-1-whoami")

	b.signal(syscall.SIGKILL)
	shared.expect(event{"event": "close", "slot": "scene"}, event{"event": "close", "slot": "lamp"})
	b = b.restart()
	x.result("connect", object{"url": b.mcp("_all")})
	x.awaitTools("scene-whoami", "lamp-whoami")
	x.awaitNoTools("pump-1")
}

// Spec 03 3.1, the reason _all is there from the start: a host starts the broker
// before there is any provider, sees the broker's own tools, and hears of each
// provider that joins and leaves, on the same pipe.
func TestTypeScriptHostOnAll(t *testing.T) {
	binary, err := brokerBinary()
	if err != nil {
		t.Fatal(err)
	}
	x := startExplorer(t)
	connected := x.result("connect", object{"command": binary, "args": []string{"run", "--port", "0"}, "env": object{"MCP_BROKER_STDIO_PROVIDER": "_all"}})
	if connected["server"] != "_all" {
		t.Errorf("the host is connected to %v", connected)
	}
	b := &broker{process: x.process, port: x.await(x.stderr, `started on https?://localhost:(\d+) `)[1]}
	x.awaitTools(through("_broker", brokerTools...)...)
	expectFirst(t, "tools", x.names("listTools", "tools", "name"), through("_broker", brokerTools...)...)

	p := startNode(t, "provider.mjs", "--aggregate", "multiplex", b.multiplex(), "lathe")
	p.expect(event{"event": "open", "slot": "lathe"})
	x.awaitTools("lathe-whoami")
	if diff := cmp.Diff(object{"content": textContent("lathe by multiplex")}, x.result("callTool", object{"name": "lathe-whoami"})); diff != "" {
		t.Errorf("a call of the host (-want +got):\n%s", diff)
	}
	p.tell("close lathe")
	x.awaitNoTools("lathe")
	if stderr := x.stderr.String(); strings.Contains(stderr, "names a slot this broker does not host") {
		t.Errorf("the host is warned: %s", stderr)
	}
	x.ask("close", nil)
	// The client sends SIGTERM to a child that has not ended 2 s after its input.
	x.await(x.stderr, `(?m)^\[mcp-broker\] (The stdio host has gone|SIGTERM received), stopping$`)
}

// MCP Inspector from a shell, against both reserved slots.
func TestInspectorReserved(t *testing.T) {
	requireTool(t, "npm")
	modules, err := nodeModules()
	if err != nil {
		t.Fatal(err)
	}
	node := inspectorNode(t, modules)
	b := startBroker(t)
	b.await(b.stderr, aggregateReady)
	for _, tt := range []struct {
		target []string
		method []string
		expect func(t *testing.T, result object)
	}{
		{[]string{b.mcp("_broker")}, []string{"tools/list"}, func(t *testing.T, result object) {
			expectFirst(t, "tools", names(result, "tools", "name"), brokerTools...)
		}},
		{[]string{b.sse("_broker"), "--transport", "sse"}, []string{"tools/call", "--tool-name", "provider_status", "--tool-arg", "name=_all"}, func(t *testing.T, result object) {
			if status, _ := result["structuredContent"].(object); status["name"] != "_all" || status["transport"] != "loopback" || status["connected"] != true {
				t.Errorf("provider_status answers %v", result)
			}
		}},
		{[]string{b.mcp("_broker")}, []string{"resources/list"}, func(t *testing.T, result object) {
			expectFirst(t, "resources", names(result, "resources", "uri"), "broker://info", "broker://providers", "broker://guide/index")
		}},
		{[]string{b.mcp("_broker")}, []string{"resources/templates/list"}, func(t *testing.T, result object) {
			expectFirst(t, "templates", names(result, "resourceTemplates", "uriTemplate"), "broker://providers/{name}", "broker://guide/{topic}")
		}},
		{[]string{b.mcp("_broker")}, []string{"resources/read", "--uri", "broker://guide/host-config"}, func(t *testing.T, result object) {
			expectNames(t, "contents", names(result, "contents", "mimeType"), "text/markdown")
		}},
		{[]string{b.mcp("_all")}, []string{"tools/list"}, func(t *testing.T, result object) {
			expectFirst(t, "tools", names(result, "tools", "name"), through("_broker", brokerTools...)...)
		}},
		{[]string{b.sse("_all"), "--transport", "sse"}, []string{"tools/call", "--tool-name", "_broker-broker_guide", "--tool-arg", "topic=deploy"}, func(t *testing.T, result object) {
			if text := names(result, "content", "text"); len(text) != 1 || !strings.HasPrefix(text[0], "# ") || result["isError"] != false {
				t.Errorf("broker_guide answers %v", result)
			}
		}},
		{[]string{b.mcp("_all")}, []string{"prompts/list"}, func(t *testing.T, result object) {
			expectNames(t, "prompts", names(result, "prompts", "name"))
		}},
	} {
		t.Run(strings.Join(tt.method, " "), func(t *testing.T) {
			t.Parallel()
			launcher := filepath.Join(modules, "@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js")
			args := slices.Concat([]string{launcher, "--cli", "--format", "json"}, tt.target, []string{"--method"}, tt.method)
			tt.expect(t, runInspector(t, node, args))
		})
	}
}
