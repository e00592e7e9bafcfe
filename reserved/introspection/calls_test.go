package introspection

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpbroker/actors/msg"
)

const opened = `"serverInfo":{"name":"_broker","version":"1.2.3"},"capabilities":{"resources":{"subscribe":true,"listChanged":true},"tools":{"listChanged":true}},"_meta":{"grammar":`

// Spec 03 1.2: the answer, with the client's revision where it is known.
func TestInitialize(t *testing.T) {
	w := newWorld(t, nil)
	w.join(1)
	for _, c := range []struct{ params, version, grammar string }{
		{`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}`, "2025-11-25", "default:en"},
		{`{"protocolVersion":"2024-11-05","clientInfo":{"name":"Claude Code","version":"1"}}`, "2024-11-05", "claude:en"},
		{`{"protocolVersion":"2025-03-26","clientInfo":{"name":5}}`, "2025-03-26", "default:en"},
		{`{"protocolVersion":"2099-01-01"}`, "2025-11-25", "default:en"},
		{`{"protocolVersion":5,"clientInfo":[]}`, "2025-11-25", "default:en"},
		{`[]`, "2025-11-25", "default:en"},
	} {
		w.answers(`"method":"initialize","params":`+c.params, reply(`{"protocolVersion":"`+c.version+`",`+opened+`"`+c.grammar+`"}}`))
	}
	w.answers(`"method":"initialize"`, reply(`{"protocolVersion":"2025-11-25",`+opened+`"default:en"}}`))
}

// Instructions and a title are there only where a wording has them.
func TestInitializeInstructions(t *testing.T) {
	w := newWorld(t, func(c *settings) {
		c.wordings.load(files("default/en.json", `{"server":{"title":"T","instructions":"Read <this> & that"}}`), func(what string) { t.Error(what) })
	})
	w.join(1)
	w.answers(`"method":"initialize"`, reply(`{"protocolVersion":"2025-11-25","serverInfo":{"name":"_broker","title":"T","version":"1.2.3"},`+
		`"capabilities":{"resources":{"subscribe":true,"listChanged":true},"tools":{"listChanged":true}},"instructions":"Read <this> & that","_meta":{"grammar":"default:en"}}`))
}

// Spec 03 1.3, row by row. Nothing requires initialize.
func TestMethods(t *testing.T) {
	w := newWorld(t, nil)
	w.join(1)
	for _, c := range []struct{ body, want string }{
		{`"method":"ping"`, reply(`{}`)},
		{`"method":"prompts/list"`, `failed -32601 Method not found: prompts/list`},
		{`"method":"prompts/get","params":{"name":"x"}`, `failed -32601 Method not found: prompts/get`},
		{`"method":"completion/complete"`, `failed -32601 Method not found: completion/complete`},
		{`"method":"logging/setLevel"`, `failed -32601 Method not found: logging/setLevel`},
		{`"method":"Ping"`, `failed -32601 Method not found: Ping`},
		{`"method":""`, `failed -32601 Method not found: `},
		{`"method":"notifications/initialized"`, `failed -32601 Method not found: notifications/initialized`},
		{`"method":"resources/read"`, `failed -32602 Missing required parameter: uri`},
		{`"method":"resources/read","params":{"uri":5}`, `failed -32602 Missing required parameter: uri`},
		{`"method":"resources/read","params":[]`, `failed -32602 Missing required parameter: uri`},
		{`"method":"resources/read","params":{"uri":"broker://x"}`, `failed -32002 Resource not found: broker://x`},
		{`"method":"tools/call"`, `failed -32602 Missing required parameter: name`},
		{`"method":"tools/call","params":{"name":5}`, `failed -32602 Missing required parameter: name`},
		{`"method":"tools/call","params":{"name":""}`, `failed -32602 Missing required parameter: name`},
		{`"method":"tools/call","params":"x"`, `failed -32602 Missing required parameter: name`},
		{`"method":"tools/call","params":{"name":"nope"}`, `failed -32602 Unknown tool: nope`},
		{`"method":"tools/call","params":{"name":"Broker_info"}`, `failed -32602 Unknown tool: Broker_info`},
		{`"method":"tools/call","params":{"name":"broker_info","arguments":{"uri":"a:b"}}`, `failed -32002 Instance not found: a:b`},
		{`"method":"tools/call","params":{"name":"nope","arguments":{"uri":5}}`, `failed -32002 Instance not found: 5`},
		{`"method":"tools/call","params":{"name":"nope","arguments":{"uri":""}}`, `failed -32602 Unknown tool: nope`},
	} {
		w.answers(c.body, c.want)
	}
	if got := w.effects(w.request(9, `"method":"ping"`)); !slices.Equal(got, []string{"c9 <- failed -32000 Session closed"}) {
		t.Errorf("a session that is no member: %q", got)
	}
}

// A notification is never answered.
func TestNotifications(t *testing.T) {
	w := newWorld(t, nil)
	w.join(1)
	for _, method := range []string{"notifications/initialized", "notifications/cancelled", "tools/list", "x"} {
		f := w.request(1, `"method":"`+method+`"`).Frame
		w.expect(method, &msg.ClientNote{Session: 1, Frame: f})
	}
	w.expect("an answer to nothing", &msg.ClientAnswer{Session: 1})
	w.expect("an ask of nobody", &msg.AskUndeliverable{Session: 1})
}

// Spec 03 1.4: the tools in their order, with schemas; a cursor is ignored.
func TestToolsList(t *testing.T) {
	w := newWorld(t, func(c *settings) {
		c.wordings = newWordings("")
		c.wordings.load(files("default/en.json", `{"tools":{
			"broker_info":{"description":"I"},"providers_list":{"description":"L","title":"Slots"},
			"provider_status":{"description":"S","properties":{"name":"N"}},
			"broker_guide":{"description":"G","properties":{"topic":"T"}},
			"broker_diagnose":{"description":"D","properties":{"slot":"O"}}}}`), func(what string) { t.Error(what) })
	})
	w.join(1)
	const reads = `,"annotations":{"readOnlyHint":true,"openWorldHint":false}}`
	want := reply(`{"tools":[` +
		`{"name":"broker_info","description":"I","inputSchema":{"type":"object","properties":{},"additionalProperties":false}` + reads + `,` +
		`{"name":"providers_list","title":"Slots","description":"L","inputSchema":{"type":"object","properties":{},"additionalProperties":false}` + reads + `,` +
		`{"name":"provider_status","description":"S","inputSchema":{"type":"object","properties":{"name":{"type":"string","description":"N"}},"required":["name"],"additionalProperties":false}` + reads + `,` +
		`{"name":"broker_guide","description":"G","inputSchema":{"type":"object","properties":{"topic":{"type":"string","enum":["index","publish-provider","connect-client","host-config","deploy","troubleshooting"],"description":"T"}},"additionalProperties":false}` + reads + `,` +
		`{"name":"broker_diagnose","description":"D","inputSchema":{"type":"object","properties":{"slot":{"type":"string","description":"O"}},"additionalProperties":false}` + reads + `]}`)
	w.answers(`"method":"tools/list"`, want)
	w.answers(`"method":"tools/list","params":{"cursor":"x"}`, want)
}

const infoObject = `{"name":"b","version":"1.2.3","startedAt":"2026-11-30T11:58:29.500Z","uptimeSeconds":90,"host":"127.0.0.1","port":3000,"tls":false,` +
	`"paths":{"provider":"/provider","providers":"/providers","client":"/client","mcp":"/mcp","sse":"/sse","messages":"/messages"}}`

func call(name, arguments string) string {
	if arguments != "" {
		arguments = `,"arguments":` + arguments
	}
	return `"method":"tools/call","params":{"name":"` + name + `"` + arguments + `}`
}

// A broker with a configuration file tells what became of its last change.
func TestBrokerInfoConfiguration(t *testing.T) {
	var c Configuration
	w := newWorld(t, func(s *settings) { s.configuration = func() Configuration { return c } })
	w.join(1)
	for _, tt := range []struct {
		is   Configuration
		want string
	}{
		{Configuration{}, ""},
		{Configuration{File: "/etc/b.toml"}, `"configuration":{"file":"/etc/b.toml","lastReload":null,"needsRestart":[]}`},
		{Configuration{File: "/etc/b.toml", ReloadedAt: epoch, Refused: "b.toml:1:1: no"},
			`"configuration":{"file":"/etc/b.toml","lastReload":{"at":"2026-11-30T12:00:00.000Z","applied":false,"error":"b.toml:1:1: no"},"needsRestart":[]}`},
		{Configuration{ReloadedAt: epoch, Restart: []string{"port"}},
			`"configuration":{"file":null,"lastReload":{"at":"2026-11-30T12:00:00.000Z","applied":true,"error":null},"needsRestart":["port"]}`},
	} {
		c = tt.is
		want := infoObject
		if tt.want != "" {
			want = strings.TrimSuffix(infoObject, "}") + "," + tt.want + "}"
		}
		w.answers(call("broker_info", ""), returns(want))
	}
}

// Spec 03 1.4 broker_info, and broker://info of 1.5.
func TestBrokerInfo(t *testing.T) {
	w := newWorld(t, nil)
	w.join(1)
	w.answers(call("broker_info", ""), returns(infoObject))
	w.answers(call("broker_info", "{}"), returns(infoObject))
	w.answers(call("broker_info", "null"), returns(infoObject))
	w.answers(`"method":"resources/read","params":{"uri":"broker://info"}`, reply(`{"contents":[{"uri":"broker://info","mimeType":"application/json","text":`+jsonText(infoObject)+`}]}`))

	w = newWorld(t, func(c *settings) { c.identity.StartedAt = time.Time{} })
	w.join(1)
	if got := w.answer(call("broker_info", "")); !strings.Contains(got, `"startedAt":null,"uptimeSeconds":0,`) {
		t.Errorf("before the start: %s", got)
	}
}

func jsonText(text string) string {
	return strings.TrimSuffix(strings.TrimPrefix(says(text, false), `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":`), `}],"isError":false}}`)
}

// Arguments are held to the published schemas; the exact texts are of spec 03 1.4.
func TestArguments(t *testing.T) {
	w := newWorld(t, nil)
	w.join(1)
	const topics = `Valid topics: index, publish-provider, connect-client, host-config, deploy, troubleshooting.`
	const whole = ` Give the exact name of one slot, or leave it out to diagnose the whole broker.`
	for _, c := range []struct{ tool, arguments, want string }{
		{"broker_info", `{"x":1}`, `Unknown argument "x". broker_info takes no arguments.`},
		{"providers_list", `{"b":1,"a":1}`, `Unknown argument "a". providers_list takes no arguments.`},
		{"broker_info", `[]`, `Invalid arguments: expected an object, got array. broker_info takes no arguments.`},
		{"provider_status", `"x"`, `Invalid arguments: expected an object, got string. provider_status takes one argument: "name" (string, required).`},
		{"provider_status", ``, `Missing required argument: "name" (string).`},
		{"provider_status", `{}`, `Missing required argument: "name" (string).`},
		{"provider_status", `{"name":""}`, `Missing required argument: "name" (string).`},
		{"provider_status", `{"name":null}`, `Missing required argument: "name" (string).`},
		{"provider_status", `{"name":5}`, `Missing required argument: "name" (string).`},
		{"provider_status", `{"name":"a","slot":"b"}`, `Unknown argument "slot". provider_status takes one argument: "name" (string, required).`},
		{"provider_status", `{"name":"Ghost"}`, `Unknown provider: "Ghost".`},
		{"broker_guide", `{"topic":5}`, `Invalid argument "topic": expected a string, got number. ` + topics},
		{"broker_guide", `{"topic":true}`, `Invalid argument "topic": expected a string, got boolean. ` + topics},
		{"broker_guide", `{"topic":[]}`, `Invalid argument "topic": expected a string, got array. ` + topics},
		{"broker_guide", `{"topic":{}}`, `Invalid argument "topic": expected a string, got object. ` + topics},
		{"broker_guide", `{"page":"index"}`, `Unknown argument "page". broker_guide takes one argument: "topic" (string, optional).`},
		{"broker_guide", `{"topic":"a\"b"}`, `Unknown guide topic "a"b". ` + topics + ` Call broker_guide without arguments for the index.`},
		{"broker_guide", `{"topic":"Index"}`, `Unknown guide topic "Index". ` + topics + ` Call broker_guide without arguments for the index.`},
		{"broker_diagnose", `{"slot":5}`, `Invalid argument "slot": expected a string, got number.` + whole},
		{"broker_diagnose", `{"slot":["a"]}`, `Invalid argument "slot": expected a string, got array.` + whole},
		{"broker_diagnose", `{"name":"a"}`, `Unknown argument "name". broker_diagnose takes one argument: "slot" (string, optional).`},
		{"broker_diagnose", `{"slot":"Ghost"}`, `Unknown slot: "Ghost". No provider and no client has ever used that name. Call providers_list to see the names there are; they are case-sensitive. Leave the argument out to diagnose the whole broker.`},
		{"broker_info", `{"uri":"broker://info"}`, `Unknown argument "uri". broker_info takes no arguments.`},
	} {
		w.answers(call(c.tool, c.arguments), says(c.want, true))
	}
}

// Spec 03 1.4 broker_guide: text only; the topic is trimmed, and index where it is
// not given.
func TestBrokerGuide(t *testing.T) {
	w := newWorld(t, nil)
	w.join(1)
	for arguments, topic := range map[string]string{
		``: "index", `null`: "index", `{}`: "index", `{"topic":null}`: "index", `{"topic":""}`: "index", `{"topic":"  "}`: "index",
		`{"topic":"deploy"}`: "deploy", `{"topic":" deploy\n"}`: "deploy", `{"topic":"dep\u006coy"}`: "deploy",
	} {
		w.answers(call("broker_guide", arguments), says("# "+topic+"\n", false))
	}
}

// Spec 03 1.4 broker_diagnose: the report of the whole broker or of one slot.
func TestBrokerDiagnose(t *testing.T) {
	w := newWorld(t, nil)
	w.join(1)
	w.slot(msg.SlotInfo{Name: "a"}, msg.SlotInfo{Name: "a"})
	w.slot(msg.SlotInfo{Name: "b"}, msg.SlotInfo{Name: "b"})
	w.answers(call("broker_diagnose", ``), returns(`{"slots":2,"of":""}`))
	w.answers(call("broker_diagnose", `{"slot":null}`), returns(`{"slots":2,"of":""}`))
	w.answers(call("broker_diagnose", `{"slot":""}`), returns(`{"slots":2,"of":""}`))
	w.answers(call("broker_diagnose", `{"slot":"b"}`), returns(`{"slots":2,"of":"b"}`))
}

// Spec 03 1.5: the resources and templates in their order.
func TestResourceLists(t *testing.T) {
	w := newWorld(t, nil)
	w.join(1)
	var resources struct {
		Result struct {
			Resources []map[string]string
		}
	}
	var templates struct {
		Result struct {
			ResourceTemplates []map[string]string
		}
	}
	decode(t, w.answer(`"method":"resources/list"`), &resources)
	decode(t, w.answer(`"method":"resources/templates/list"`), &templates)
	want := []string{"broker://info", "broker://providers", "broker://guide/index", "broker://guide/publish-provider", "broker://guide/connect-client",
		"broker://guide/host-config", "broker://guide/deploy", "broker://guide/troubleshooting"}
	for i, r := range resources.Result.Resources {
		mime := mimeJSON
		if i > 1 {
			mime = mimeMarkdown
		}
		if i >= len(want) || r["uri"] != want[i] || r["mimeType"] != mime || r["name"] == "" || r["description"] == "" || len(r) != 4 {
			t.Errorf("resource %d is %v", i, r)
		}
	}
	if got := resources.Result.Resources; len(got) != len(want) {
		t.Errorf("%d resources, want %d", len(got), len(want))
	}
	if guide := resources.Result.Resources[3]; guide["name"] != "Publish" || guide["description"] != "How to publish" {
		t.Errorf("a page has other words than its own: %v", guide)
	}
	for i, r := range templates.Result.ResourceTemplates {
		want := []string{"broker://providers/{name}", "broker://guide/{topic}"}[i]
		if r["uriTemplate"] != want || r["mimeType"] != []string{mimeJSON, mimeMarkdown}[i] || r["name"] == "" || r["description"] == "" || len(r) != 4 {
			t.Errorf("template %d is %v", i, r)
		}
	}
}

func decode(t *testing.T, line string, into any) {
	t.Helper()
	_, frame, _ := strings.Cut(line, " <- ")
	if err := json.Unmarshal([]byte(frame), into); err != nil {
		t.Fatalf("decode %s: %v", line, err)
	}
}

// Spec 03 1.5: reads of the guide; the answer names the canonical URI.
func TestReadGuide(t *testing.T) {
	w := newWorld(t, nil)
	w.join(1)
	page := reply(`{"contents":[{"uri":"broker://guide/host-config","mimeType":"text/markdown","text":"# host-config\n"}]}`)
	w.answers(`"method":"resources/read","params":{"uri":"broker://guide/host-config"}`, page)
	w.answers(`"method":"resources/read","params":{"uri":"broker://guide/host%2Dconfi%67"}`, page)
	for _, uri := range []string{"broker://guide/", "broker://guide/nope", "broker://guide/index/", "broker://guide/%zz", "xbroker://guide/index",
		"broker://guide/index?x", "broker://guide", "Broker://guide/index", "broker://info/", "broker://providers/", "broker://providers/a/b", "broker://", " broker://info"} {
		w.answers(`"method":"resources/read","params":{"uri":"`+uri+`"}`, fmt.Sprintf("failed -32002 Resource not found: %s", uri))
	}
}
