package egress_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"mcpbroker"
	"mcpbroker/actors/wire"
	"mcpbroker/brokertest"
	"mcpbroker/config"
)

// transport is one way in for clients. A further one is a further row: it has to
// bring whole messages in and out, and to render a refusal it words in its own
// protocol as the JSON-RPC error it stands for.
type transport struct {
	name    string
	advice  string // what "not connected" goes on with; JSON without quotes
	junk    string // the text of -32700, where the transport has its own
	goodbye string // what a connection ends with when the broker stops
	cut     string // what call 1 comes to before that, when it has no answer; "" is nothing
	talks   bool   // requests travel on that connection, not beside it
	dial    func(t testing.TB, b *brokertest.Broker, slot string) caller
}

// caller is a client of one slot: JSON-RPC messages without their framing.
type caller interface {
	Send(frame string)
	Receive() string // the next message, an answer or not
	Leave()          // ends the session
	Ended() string   // waits until the broker ends it, with nothing more to receive
}

var transports = []transport{
	{name: "http", junk: "Body is not valid JSON", cut: failed(`null`, -32000, "Session closed"), dial: dialHTTP},
	{name: "sse", dial: func(t testing.TB, b *brokertest.Broker, slot string) caller {
		return sseCaller{b.DialSSE(t, slot)}
	}},
	{name: "ws", advice: ". " + wire.AdviceSocket, talks: true, goodbye: "1001 The broker is stopping",
		dial: func(t testing.TB, b *brokertest.Broker, slot string) caller {
			return wsCaller{brokertest.Dial(t, b.ClientURL(slot), nil)}
		}},
	{name: "stdio", advice: ". " + strings.ReplaceAll(wire.AdviceStdio, `"`, `\"`), talks: true,
		cut: failed(`1`, -32000, "Session closed"), dial: dialStdio},
}

// condition is one condition that has the same outcome on every transport.
type condition struct {
	name   string
	change func(*config.Config) // nil is the default configuration
	empty  bool                 // no provider holds the slot
	except string               // the transport it does not fit
	run    func(w *world)
}

// Spec 01 sections 4 and 7: the same condition has the same outcome, in the same
// words, whatever transport the client uses.
func TestSameConditionSameWords(t *testing.T) {
	for _, via := range transports {
		for _, r := range rules {
			if r.except == via.name {
				continue
			}
			t.Run(via.name+"/"+r.name, func(t *testing.T) { r.run(newWorld(t, via, r)) })
		}
	}
}

var rules = []condition{
	{name: "T1 bytes", run: transcript},
	{name: "T5 provider loss", run: providerLoss},
	{name: "4.3 not connected", empty: true, run: notConnected},
	{name: "4.4 deadline", change: func(c *config.Config) { c.ProviderRequestTimeoutMs = 500 }, empty: true, run: deadline},
	{name: "F-45 caller leaves", except: "stdio", run: callerLeaves}, // F-37: a host is given its answers
	{name: "5.12 stop", run: stopFinishes},
	{name: "5.12 stop without an answer", run: stopGivesUp},
	{name: "F-19 batches", run: batches},
	{name: "F-19 batches of 2025-03-26", run: batchesOf20250326},
	{name: "F-17 junk", run: junk},
	{name: "row 40 null id", run: nullID},
	{name: "row 37 two clients with one id", run: sameIDTwice},
	{name: "row 38 one id twice in flight", run: duplicateID},
	{name: "row 38 answers out of order", run: outOfOrder},
	{name: "pending bounds", change: func(c *config.Config) { c.MaxPendingPerSession, c.MaxPendingPerSlot = 2, 3 }, run: pendingBounds},
	{name: "session bound", change: func(c *config.Config) { c.MaxSessionsPerSlot = 2 }, run: sessionBound},
	{name: "row 68 provider errors", run: providerErrors},
	{name: "cached initialize", run: cachedInitialize},

	{name: "4.8 broadcasts", run: broadcasts},
	{name: "4.8 client notifications", run: clientNotifications},
	{name: "F-20 client responses", run: clientResponses},
	{name: "F-24, F-26 what no client sees", run: notForClients},
	{name: "F-27 progress is private", run: progressIsPrivate},
	{name: "F-28 cancellation is private", run: cancellationIsPrivate},
	{name: "4.5 subscriptions", run: subscriptions},
	{name: "4.5 subscription errors", change: func(c *config.Config) {
		c.ResourceSubscriptions = config.ResourceSubscriptions{MaxSubscriptionsPerClient: 1, MaxSubscriptionsPerSlot: 2, MaxResourceURILength: 8}
	}, run: subscriptionErrors},
	{name: "T8 provider requests", run: providerRequests},
	{name: "relayed provider requests", change: relayRequests, run: relayedRequests},
	{name: "relayed to nobody", change: relayRequests, run: relayedToNobody},

	{name: "F-22 numbers", run: numbers},
	{name: "row 58 unknown members", run: unknownMembers},
	{name: "4.2 trace and caller key", run: traceAndCallerKey},
	{name: "row 61 line separators", run: lineSeparators},
	{name: "row 59 multi-byte text", run: multiByteText},
	{name: "row 56 sizes", run: sizes},
	{name: "order", run: order},
}

func relayRequests(c *config.Config) { c.ServerRequests = config.ServerRequestsRelay }

// world is a broker whose slot "s" is held by a provider, and reached over one
// transport.
type world struct {
	*testing.T
	via     transport
	b       *brokertest.Broker
	p       *brokertest.Socket // nil: nobody
	clients int
	marks   int
}

func newWorld(t *testing.T, via transport, r condition) *world {
	c := config.Default()
	c.Host, c.Port = "127.0.0.1", 0
	if r.change != nil {
		r.change(c)
	}
	w := &world{T: t, via: via, b: brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{mcpbroker.WithConfig(c)}})}
	if !r.empty {
		w.p = w.b.Dedicated(t, "s")
	}
	return w
}

// client connects one and initializes it.
func (w *world) client() caller { w.Helper(); return w.clientWith(`{}`, brokertest.ServerResult) }

// clientWith declares capabilities. The provider's result serves the first client,
// and from the cache the others.
func (w *world) clientWith(capabilities, result string) caller {
	w.Helper()
	c := w.via.dial(w, w.b, "s")
	c.Send(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":` + capabilities + `}}`)
	w.clients++
	switch {
	case w.p == nil:
		w.is("initialize", c.Receive(), `{"jsonrpc":"2.0","id":"init","error":{"code":-32000,"message":"Provider \"s\" not connected`+w.via.advice+`"}}`)
		return c
	case w.clients == 1:
		brokertest.Respond(w.p, w.p.Receive(), result)
	}
	w.is("initialize", c.Receive(), `{"jsonrpc":"2.0","id":"init","result":`+result+`}`)
	if w.clients == 1 {
		c.Send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		w.is("initialized", w.p.Receive(), `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	return c
}

func (w *world) is(what, got, want string) {
	w.Helper()
	if got != want {
		w.Errorf("%s:\n got %.2000s\nwant %.2000s", what, got, want)
	}
}

// ask sends a call of method m with this raw id and returns what the provider got.
func (w *world) ask(c caller, id string) string {
	w.Helper()
	c.Send(`{"jsonrpc":"2.0","id":` + id + `,"method":"m"}`)
	return w.p.Receive()
}

// answer lets the provider answer request with result.
func (w *world) answer(request, result string) { brokertest.Respond(w.p, request, result) }

// quiet proves that nothing is under way to these clients, and that they are
// still served.
func (w *world) quiet(clients ...caller) {
	w.Helper()
	w.marks++
	mark := fmt.Sprintf(`{"method":"mark","params":{"n":%d}}`, w.marks)
	w.p.Send(mark)
	for _, c := range clients {
		w.is("nothing but the mark", c.Receive(), mark)
	}
}

// stop stops the broker; ctx bounds the waiting for answers.
func (w *world) stop(ctx context.Context) <-chan error {
	stopped := make(chan error, 1)
	go func() { stopped <- w.b.Broker.Stop(ctx) }()
	return stopped
}

// pairOf receives two messages in the order of their text.
func pairOf(c caller) [2]string {
	a, b := c.Receive(), c.Receive()
	if a > b {
		a, b = b, a
	}
	return [2]string{a, b}
}

// failed is the answer of a failed call; message is JSON without quotes.
func failed(id string, code int, message string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"%s"}}`, id, code, message)
}

var freshTrace = regexp.MustCompile(`00-[0-9a-f]{32}-[0-9a-f]{16}-01`)

// stable shows the trace context the broker made as $TRACE.
func stable(frame string) string { return freshTrace.ReplaceAllString(frame, "$$TRACE") }
