//lint:file-ignore SA1019 an independent WebSocket implementation judges ours

package arch_test

// module is the path of this module.
const module = "mcpbroker"

// tables names the file to edit, for messages.
const tables = "internal/arch/table_test.go"

// The chain every actor stands on.
var (
	onWire = []string{"actors/wire"}
	onMCP  = append(onWire[:1:1], "actors/mcp")
	onMsg  = append(onMCP[:2:2], "actors/msg")
	onRT   = append(onMsg[:3:3], "actors/rt")
)

// with returns what base allows and more.
func with(base []string, more ...string) []string { return append(base[:len(base):len(base)], more...) }

// imports says which packages of this module a package may import; "." is the
// root. What is not listed is forbidden. Tests are free.
var imports = map[string][]string{
	"actors/wire": nil,
	"actors/mcp":  onWire,
	"actors/msg":  onMCP,
	"actors/rt":   onMsg,
	// The registry supervises the slots: it alone spawns them.
	"actors/registry": with(onRT, "actors/slot"),
	"actors/slot":     onRT,

	// Sessions of an isolated upstream have a slot of their own each.
	"actors/upstreams": with(onRT, "actors/slot"),

	// The provider side. ingress/wsconn is the leaf it shares with egress.
	"ingress":          with(onRT, "ingress/socket", "ingress/wsconn"),
	"ingress/wsconn":   onMsg,
	"ingress/socket":   with(onRT, "ingress/wsconn"),
	"ingress/loopback": with(onRT, "ingress/wsconn"),
	"ingress/stdio":    with(onRT, "internal/mask"),
	"ingress/remote":   with(onRT, "ingress/wsconn", "internal/idleconn", "internal/mask"),
	"ingress/bundle":   nil, // which the command line uses alone, too

	// The client side knows neither ingress nor the actors behind the registry.
	"egress":             onRT,
	"egress/session":     onRT,
	"egress/eventstream": onRT,
	"egress/streamable":  with(onRT, "egress", "egress/session", "egress/eventstream"),
	"egress/sse":         with(onRT, "egress", "egress/session", "egress/eventstream"),
	"egress/static":      {"actors/wire", "egress"},
	"egress/wsclient":    with(onRT, "egress/session", "ingress/wsconn"),
	"egress/stdio":       with(onRT, "egress/session"),
	"egress/bridge":      with(onMCP, "internal/idleconn"), // a client of brokers, in a process of its own

	// The slots the broker serves itself.
	"reserved/roster":        onMsg,
	"reserved/guide":         nil,
	"reserved/diagnosis":     onMsg,
	"reserved/introspection": with(onRT, "reserved/roster"),
	"reserved/aggregate":     with(onRT, "reserved/roster"),

	// The ends: no part of the broker.
	"config":   nil,
	"provider": nil,

	// The device library is C; its tests are Go.
	"firmware":              nil,
	"firmware/firmwaretest": nil,

	// The root wires everything together; config reaches it and cmd only, and
	// the harness that stands in for cmd in tests.
	".": with(onRT, "actors/registry", "actors/slot", "config", "provider", "ingress", "ingress/socket",
		"ingress/loopback", "egress", "egress/streamable", "egress/sse", "egress/wsclient", "egress/stdio", "egress/static",
		"actors/upstreams", "ingress/stdio", "ingress/remote", "ingress/bundle",
		"reserved/aggregate", "reserved/diagnosis", "reserved/guide", "reserved/introspection"),
	"cmd/broker": {".", "actors/wire", "config", "egress/bridge", "ingress/bundle", "provider", "scenarios"},
	"brokertest": {".", "actors/msg", "actors/wire", "provider"},
	// Scenarios look at a broker from outside; actors/msg describes its slots.
	"scenarios":       {".", "actors/msg", "provider", "internal/freeport"},
	"bench":           nil,
	"internal/arch":   nil,
	"internal/script": nil,
	"internal/leak":   nil,

	// For servers of scenarios and tests.
	"internal/freeport": nil,

	// What clients of HTTP servers share.
	"internal/idleconn": nil,
	"internal/mask":     {"actors/wire"},
}

// externals says which packages may import a package of another module.
var externals = map[string][]string{
	"github.com/asynkron/protoactor-go/actor":       {"actors/rt"},
	"github.com/asynkron/protoactor-go/eventstream": {"actors/rt"},
	"github.com/BurntSushi/toml":                    {"config", "scenarios"},
	"github.com/coder/websocket":                    {"ingress/wsconn", "provider", "scenarios", "bench"},
	"github.com/google/go-cmp/cmp":                  {"internal/script"},
	"github.com/urfave/cli/v2":                      {"cmd/broker"},
	"go.uber.org/goleak":                            {"internal/leak"},
	"nhooyr.io/websocket":                           {"brokertest"}, // the independent peer
}

// testExternals may be imported by the tests of any package.
var testExternals = []string{
	"github.com/google/go-cmp/cmp",
	"github.com/google/go-cmp/cmp/cmpopts",
	"github.com/mark3labs/mcp-go/client",
	"github.com/mark3labs/mcp-go/client/transport",
	"github.com/mark3labs/mcp-go/mcp",
	"github.com/modelcontextprotocol/go-sdk/jsonrpc",
	"github.com/modelcontextprotocol/go-sdk/mcp",
	"go.uber.org/goleak",
	"nhooyr.io/websocket",
	"pgregory.net/rapid",
}

// corePackages have nothing but pure code.
var corePackages = []string{"actors/wire", "actors/mcp", "actors/msg"}

// shells are the files of packages with a core.go that are not part of the core.
// Every other file beside a core.go is held to the rules of cores.
var shells = map[string][]string{
	"actors/registry": {"actor.go"},
	"actors/slot":     {"actor.go"},
	"egress/session":  {"actor.go", "group.go"},
	"ingress/socket":  {"actor.go"},

	"reserved/introspection": {"actor.go", "gather.go"},
	"reserved/aggregate":     {"actor.go", "memberref.go"},
	"actors/upstreams":       {"actor.go", "set.go", "apply.go", "instances.go", "isolation.go", "isolation_room.go", "isolation_story.go"},
}

// coreFiles are pure files of packages that are not.
var coreFiles = []string{"actors/rt/backoff.go"}

// impure are the imports no core may have: time that passes, input and output,
// sharing, chance, and the actors themselves.
var impure = []string{
	"context", "crypto/rand", "io/ioutil", "log", "math/rand", "math/rand/v2", "net", "net/http", "os", "os/exec",
	"os/signal", "runtime", "sync", "sync/atomic", "syscall", "unsafe", module + "/actors/rt", "github.com/asynkron/protoactor-go/actor",
}

// clock are the functions of package time that read or run a clock.
var clock = []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"}
