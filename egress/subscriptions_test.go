package egress_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mcpbroker"
	"mcpbroker/brokertest"
	"mcpbroker/config"
)

const (
	marker = `{"jsonrpc":"2.0","method":"marker"}`
	done   = `{"jsonrpc":"2.0","id":%d,"result":{}}`
)

func subscribe(id int, uri string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/subscribe","params":{"uri":"%s"}}`, id, uri)
}

func unsubscribe(id int, uri string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/unsubscribe","params":{"uri":"%s"}}`, id, uri)
}

func updated(uri string) string {
	return `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"` + uri + `"}}`
}

// upstream takes the broker's request about a URI and answers it with success.
func upstream(t *testing.T, p brokertest.Provider, method, uri string) {
	t.Helper()
	request := p.Receive()
	equal(t, "upstream", request, `{"jsonrpc":"2.0","id":`+brokertest.ID(request)+`,"method":"`+method+`","params":{"uri":"`+uri+`"}}`)
	brokertest.Respond(p, request, "{}")
}

// watch makes a client the first subscriber of a URI.
func watch(t *testing.T, p brokertest.Provider, c client, id int, uri string) {
	t.Helper()
	c.Send(subscribe(id, uri))
	upstream(t, p, "resources/subscribe", uri)
	equal(t, "subscribed", c.Answer(), fmt.Sprintf(done, id))
}

// hear makes sure that a client has got exactly these events before the marker.
func hear(t *testing.T, p brokertest.Provider, c client, events ...string) {
	t.Helper()
	for _, want := range append(events, marker) {
		equal(t, "event", c.Event(), want)
	}
}

// Section 9 items 35, 36, 37: two subscribers cost one upstream subscribe, an
// update reaches both and no bystander; the last to unsubscribe, or to leave,
// costs one upstream unsubscribe.
func TestSubscribers(t *testing.T) {
	everywhere(t, func(t *testing.T, open opener) {
		b := brokertest.Start(t, brokertest.Options{})
		p := prepared(t, b)
		one, two, bystander := open(t, b), open(t, b), open(t, b)

		watch(t, p, one, 1, "file:///a")
		two.Send(subscribe(1, "file:///a"))
		equal(t, "the second subscriber", two.Answer(), fmt.Sprintf(done, 1))
		two.Send(`{"jsonrpc":"2.0","id":2,"method":"resources\/subscribe","params":{"uri":"file:\/\/\/a"}}`)
		equal(t, "F-47, and twice is one", two.Answer(), fmt.Sprintf(done, 2))
		watched(t, b, 2)
		p.Send(updated("file:///a"))
		p.Send(updated("file:///b"))
		p.Send(marker)
		hear(t, p, one, updated("file:///a"))
		hear(t, p, two, updated("file:///a"))
		hear(t, p, bystander)

		one.Send(unsubscribe(3, "file:///a"))
		equal(t, "the first unsubscribe", one.Answer(), fmt.Sprintf(done, 3))
		watched(t, b, 1)
		two.Send(unsubscribe(3, "file:///a"))
		equal(t, "the last unsubscribe", two.Answer(), fmt.Sprintf(done, 3))
		upstream(t, p, "resources/unsubscribe", "file:///a")
		watched(t, b, 0)
		p.Send(updated("file:///a"))
		p.Send(marker)
		hear(t, p, one)
		hear(t, p, two)

		watch(t, p, one, 4, "file:///a")
		two.Send(subscribe(4, "file:///a"))
		two.Answer()
		one.Leave()
		watched(t, b, 1)
		two.Leave()
		upstream(t, p, "resources/unsubscribe", "file:///a")
		watched(t, b, 0)
		if got := p.Pending(); got != "" {
			t.Errorf("upstream, and nobody asked for it: %s", got)
		}
	})
}

// Spec 01 4.5: who subscribes during the first round trip waits for it; section 9
// item 38: a refusal is relayed as it is, and the next asks for itself.
func TestSubscribeRefused(t *testing.T) {
	everywhere(t, func(t *testing.T, open opener) {
		b := brokertest.Start(t, brokertest.Options{})
		p := prepared(t, b)
		one, two := open(t, b), open(t, b)
		one.Send(subscribe(1, "u:a"))
		first := p.Receive()
		two.Send(subscribe(2, "u:a"))
		b.Pending(t, "s", 2)
		const refusal = `{"jsonrpc":"2.0","id":%s,"error":{"code":-32002,"message":"Resource not found","data":{"uri":"u:a"}}}`
		p.Send(fmt.Sprintf(refusal, brokertest.ID(first)))
		equal(t, "the refusal", one.Answer(), fmt.Sprintf(refusal, "1"))
		upstream(t, p, "resources/subscribe", "u:a")
		equal(t, "the next", two.Answer(), fmt.Sprintf(done, 2))
		watched(t, b, 1)
	})
}

// Section 9 item 39, spec 01 4.8: an update without a usable uri reaches nobody;
// other notifications reach everybody.
func TestUpdateWithoutURI(t *testing.T) {
	everywhere(t, func(t *testing.T, open opener) {
		b := brokertest.Start(t, brokertest.Options{})
		p := prepared(t, b)
		one, two := open(t, b), open(t, b)
		watch(t, p, one, 1, "u:a")
		p.Send(`{"jsonrpc":"2.0","method":"notifications/resources/updated"}`)
		p.Send(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":7}}`)
		p.Send(updated(strings.Repeat("u", 2049)))
		p.Send(marker)
		hear(t, p, one)
		hear(t, p, two)
		b.Log.Wait(t, `provider "s" sent notifications/resources/updated without a usable params.uri`)
		if lines := b.Log.Lines("without a usable params.uri"); len(lines) != 1 {
			t.Errorf("warnings %q", lines)
		}
	})
}

// Section 9 item 40, spec 01 4.6, F-25, row 17: a provider that comes back gets
// the last client's initialize, notifications/initialized, and one subscribe per
// URI; each subscriber gets one update, and later updates arrive once each.
func TestReplay(t *testing.T) {
	everywhere(t, func(t *testing.T, open opener) {
		b := brokertest.Start(t, brokertest.Options{})
		p := prepared(t, b)
		one, two := open(t, b), open(t, b)
		const params = `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"the last","version":"9"}}`
		two.Send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":` + params + `}`)
		two.Answer()
		for i, uri := range []string{"u:c", "u:a", "u:b"} {
			watch(t, p, one, i+1, uri)
		}
		two.Send(subscribe(1, "u:a"))
		two.Answer()
		p.Close(1000, "")
		b.Empty(t, "s")

		began := time.Now()
		q := brokertest.Dial(t, b.ProviderURL("s"), nil)
		request := q.Receive()
		equal(t, "first", request, `{"jsonrpc":"2.0","id":`+brokertest.ID(request)+`,"method":"initialize","params":`+params+`}`)
		brokertest.Respond(q, request, brokertest.ServerResult)
		requests := []string{q.Receive(), q.Receive(), q.Receive(), q.Receive()}
		const initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
		if requests[3] == initialized && time.Since(began) > time.Second { // all that the broker waits for an answer
			requests = append(requests[3:], requests[:3]...)
		}
		equal(t, "second", requests[0], initialized)
		requests = requests[1:]
		for i, uri := range []string{"u:a", "u:b", "u:c"} {
			equal(t, "then", requests[i], `{"jsonrpc":"2.0","id":`+brokertest.ID(requests[i])+`,"method":"resources/subscribe","params":{"uri":"`+uri+`"}}`)
		}
		brokertest.Respond(q, requests[0], "{}")
		brokertest.Respond(q, requests[1], "{}")
		q.Send(`{"jsonrpc":"2.0","id":` + brokertest.ID(requests[2]) + `,"error":{"code":-32002,"message":"gone"}}`)
		q.Send(marker)
		hear(t, q, one, updated("u:a"), updated("u:b"), updated("u:c"))
		hear(t, q, two, updated("u:a"))
		b.Log.Wait(t, `[broker] provider "s" refused to restore the subscription to "u:c"`, "gone")
		watched(t, b, 3)

		for _, uri := range []string{"u:a", "u:b", "u:c"} {
			q.Send(updated(uri))
		}
		q.Send(marker)
		hear(t, q, one, updated("u:a"), updated("u:b"))
		hear(t, q, two, updated("u:a"))
		if got := q.Pending(); got != "" {
			t.Errorf("upstream, and nobody asked for it: %s", got)
		}
	})
}

// Section 9 item 41, spec 01 4.5: limits and missing parameters, in the same words
// on each transport; only the advice of "not connected" is the transport's.
func TestSubscribeErrors(t *testing.T) {
	everywhere(t, func(t *testing.T, open opener) {
		b := brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{
			mcpbroker.WithResourceSubscriptions(config.ResourceSubscriptions{
				MaxSubscriptionsPerClient: 1, MaxSubscriptionsPerSlot: 2, MaxResourceURILength: 5,
			}),
		}})
		p := prepared(t, b)
		one, two, three := open(t, b), open(t, b), open(t, b)
		watch(t, p, one, 1, "u:a")
		watch(t, p, two, 1, "u:b")
		for _, c := range []struct {
			from          client
			frame, answer string
		}{
			{one, subscribe(2, "u:b"), `-32000,"message":"Subscription limit reached: maxSubscriptionsPerClient is 1; unsubscribe from something first"`},
			{three, subscribe(2, "u:a"), `-32000,"message":"Subscription limit reached: maxSubscriptionsPerSlot is 2; unsubscribe from something first"`},
			{one, subscribe(2, "u:aa𝄞"), `-32602,"message":"The uri is 6 characters long, more than the 5 it may have (maxResourceUriLength)"`},
			{one, subscribe(2, ""), `-32602,"message":"Missing required parameter: uri"`},
			{one, `{"jsonrpc":"2.0","id":2,"method":"resources/unsubscribe"}`, `-32602,"message":"Missing required parameter: uri"`},
		} {
			c.from.Send(c.frame)
			equal(t, c.frame, c.from.Answer(), `{"jsonrpc":"2.0","id":2,"error":{"code":`+c.answer+`}}`)
		}
		one.Send(unsubscribe(3, "u:never"))
		equal(t, "never held", one.Answer(), fmt.Sprintf(done, 3))
		watched(t, b, 2)

		p.Close(1000, "")
		b.Empty(t, "s")
		three.Send(subscribe(3, "u:c"))
		if got, want := three.Answer(), `{"jsonrpc":"2.0","id":3,"error":{"code":-32000,"message":"Provider \"s\" not connected`; !strings.HasPrefix(got, want) {
			t.Errorf("without a provider:\n got %s\nwant %s...", got, want)
		}
	})
}

// Spec 01 4.2: a subscribe without an id is a notification like any other.
func TestSubscribeAsNotification(t *testing.T) {
	everywhere(t, func(t *testing.T, open opener) {
		b := brokertest.Start(t, brokertest.Options{})
		p := prepared(t, b)
		c := open(t, b)
		const frame = `{"jsonrpc":"2.0","method":"resources/subscribe","params":{"uri":"u:a"}}`
		c.Send(frame)
		equal(t, "upstream", p.Receive(), frame)
		watched(t, b, 0)
	})
}
