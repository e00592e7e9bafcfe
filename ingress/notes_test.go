package ingress_test

import (
	"fmt"
	"strings"
	"testing"

	"mcpbroker/brokertest"
)

// T8 of spec 01 section 11, 4.7 P3 and P4, section 9 item 47: a request of the
// provider is answered on its channel, its id unchanged; clients see nothing.
func TestProviderRequests(t *testing.T) {
	onEach(t, func(t *testing.T, b *brokertest.Broker, p brokertest.Provider, c *brokertest.Client) {
		stream := c.Listen()
		stream.Next()
		relayed := func(method string) string {
			return `"error":{"code":-32601,"message":"Method not found: the broker does not relay requests opened by a provider (` + method + `)"}`
		}
		for _, test := range []struct{ id, method, want string }{
			{`7`, "sampling/createMessage", relayed("sampling/createMessage")},
			{`"r-1"`, "roots/list", relayed("roots/list")},
			{`12345678901234567890`, "elicitation/create", relayed("elicitation/create")},
			{`"brk-1"`, "tools/list", relayed("tools/list")},
			{`3`, "ping", `"result":{}`},
			{`"p"`, "ping", `"result":{}`},
			{`4`, "broker/authorize", `"error":{"code":-32601,"message":"Method not found: broker/authorize. This broker serves no broker/ method to providers."}`},
			{`5`, "broker/telemetry", `"error":{"code":-32601,"message":"Method not found: broker/telemetry. This broker serves no broker/ method to providers."}`},
		} {
			p.Send(`{"jsonrpc":"2.0","id":` + test.id + `,"method":"` + test.method + `","params":{}}`)
			equal(t, test.method, p.Receive(), `{"jsonrpc":"2.0","id":`+test.id+`,`+test.want+`}`)
		}
		for _, silent := range []string{
			`{"jsonrpc":"2.0","method":"broker/telemetry","params":{}}`, // section 9 item 51
			`{"jsonrpc":"2.0","method":"broker/audit/result","params":{}}`,
			`{"jsonrpc":"2.0","method":"broker/other"}`,
			`{"jsonrpc":"2.0","method":"notifications/register"}`,
		} {
			p.Send(silent)
		}
		p.Send(`{"jsonrpc":"2.0","method":"notifications/marker"}`)
		equal(t, "the first event", stream.Next(), "event: message\nid: 1\ndata: "+`{"jsonrpc":"2.0","method":"notifications/marker"}`)
		for _, once := range []string{
			`[broker] provider "s" opened a request of its own (sampling/createMessage)`,
			`[broker] provider "s" sent the notification "broker/audit/result"`,
		} {
			if got := b.Log.Lines(once); len(got) != 1 {
				t.Errorf("warnings %q", got)
			}
		}
		if got := b.Log.Lines("opened a request of its own"); len(got) != 1 || !strings.Contains(got[0], "-32601") {
			t.Errorf("warnings %q", got)
		}
	})
}

// Section 9 item 6, F-24: an answer to an unknown id is dropped with one warning
// per slot that names it; the same answer twice counts once.
func TestUnmatchedAnswers(t *testing.T) {
	onEach(t, func(t *testing.T, b *brokertest.Broker, p brokertest.Provider, c *brokertest.Client) {
		stream := c.Listen()
		stream.Next()
		for _, id := range []string{`"brk-999"`, `"brk-01"`, `1`, `"x"`, `"brk-"`, `"BRK-1"`} {
			p.Send(`{"jsonrpc":"2.0","id":` + id + `,"result":{"for":"nobody"}}`)
		}
		p.Send(`{"jsonrpc":"2.0","method":"notifications/marker"}`)
		equal(t, "the first event", stream.Next(), "event: message\nid: 1\ndata: "+`{"jsonrpc":"2.0","method":"notifications/marker"}`)
		lines := b.Log.Lines("which matches no request")
		if len(lines) != 1 || !strings.HasPrefix(lines[0], `[broker] provider "s" sent a response with id "brk-999", which matches no request`) {
			t.Errorf("warnings %q", lines)
		}
	})
}

// Spec 01 4.7 P7, 4.8: notifications reach every client of the slot, verbatim
// (F-29 apart), and no client of another slot.
func TestNotificationsAreBroadcast(t *testing.T) {
	onEach(t, func(t *testing.T, b *brokertest.Broker, p brokertest.Provider, c *brokertest.Client) {
		second := brokertest.NewClient(t, b.MCPURL("s"))
		second.Initialize()
		other := brokertest.NewClient(t, b.MCPURL("other"))
		other.Initialize()
		streams := []*brokertest.Stream{c.Listen(), second.Listen()}
		bystander := other.Listen()
		for i, frame := range []string{
			`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`,
			`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
			`{"x":1,"method":"custom","jsonrpc":"2.0"}`,
			`{"method":"no version"}`,
		} {
			p.Send(frame)
			for _, s := range streams {
				if i == 0 {
					s.Next()
				}
				equal(t, "event", s.Next(), fmt.Sprintf("event: message\nid: %d\ndata: %s", i+1, frame))
			}
		}
		p.Send("{\"jsonrpc\":\"2.0\",\r\n  \"method\":\n\"pretty\"}")
		for _, s := range streams {
			equal(t, "F-29", s.Next(), "event: message\nid: 6\ndata: {\"jsonrpc\":\"2.0\",    \"method\": \"pretty\"}")
		}
		bystander.Next()
		q := b.Dedicated(t, "other")
		q.Send(`{"jsonrpc":"2.0","method":"notifications/own"}`)
		equal(t, "the other slot's first event", bystander.Next(), "event: message\nid: 1\ndata: "+`{"jsonrpc":"2.0","method":"notifications/own"}`)
	})
}

// 1,000 frames each way arrive in the order sent (design decision 2, Ordering).
func TestOrder(t *testing.T) {
	const n = 1000
	frame := func(i int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","method":"n/%d"}`, i) }
	onEach(t, func(t *testing.T, _ *brokertest.Broker, p brokertest.Provider, c *brokertest.Client) {
		stream := c.Listen()
		stream.Next()
		go func() {
			for i := range n {
				p.Send(frame(i))
			}
		}()
		for i := range n {
			if got, want := stream.Next(), fmt.Sprintf("event: message\nid: %d\ndata: %s", i+1, frame(i)); got != want {
				t.Fatalf("event %d: %s", i, got)
			}
		}
		for i := range n {
			if a := c.Post(frame(i)); a.Status != 202 {
				t.Fatalf("notification %d: %d %s", i, a.Status, a.Body)
			}
		}
		for i := range n {
			if got := p.Receive(); got != frame(i) {
				t.Fatalf("notification %d: %s", i, got)
			}
		}
	})
}
