package streamable_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"mcpbroker"
	"mcpbroker/brokertest"
)

// Spec 01 4.2, section 9 items 49 and 50: what a tracked frame looks like to the
// provider. "$ID" is the broker's id.
func TestFramesToProvider(t *testing.T) {
	_, p, c := served(t)
	const valid = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
	for _, test := range []struct{ name, sent, want string }{
		{"no params", `{"jsonrpc":"2.0","id":1,"method":"m"}`, `{"jsonrpc":"2.0","id":$ID,"method":"m","params":{"_meta":{"traceparent":"$TRACE"}}}`},
		{"empty params", `{"jsonrpc":"2.0","id":1,"method":"m","params":{}}`, `{"jsonrpc":"2.0","id":$ID,"method":"m","params":{"_meta":{"traceparent":"$TRACE"}}}`},
		{"empty _meta", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{}}}`, `{"jsonrpc":"2.0","id":$ID,"method":"m","params":{"_meta":{"traceparent":"$TRACE"}}}`},
		{"other _meta", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"k":1}}}`, `{"jsonrpc":"2.0","id":$ID,"method":"m","params":{"_meta":{"traceparent":"$TRACE","k":1}}}`},
		{"valid trace", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"traceparent":"` + valid + `"}}}`, `{"jsonrpc":"2.0","id":$ID,"method":"m","params":{"_meta":{"traceparent":"` + valid + `"}}}`},
		{"malformed trace", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"traceparent":"00-x"}}}`, `{"jsonrpc":"2.0","id":$ID,"method":"m","params":{"_meta":{"traceparent":"$TRACE"}}}`},
		{"zero trace", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"traceparent":"00-00000000000000000000000000000000-b7ad6b7169203331-01"}}}`, `{"jsonrpc":"2.0","id":$ID,"method":"m","params":{"_meta":{"traceparent":"$TRACE"}}}`},
		{"trace of another type", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"traceparent":7}}}`, `{"jsonrpc":"2.0","id":$ID,"method":"m","params":{"_meta":{"traceparent":"$TRACE"}}}`},
		{"F-21 positional params", `{"jsonrpc":"2.0","id":1,"method":"m","params":[1,"two"]}`, `{"jsonrpc":"2.0","id":$ID,"method":"m","params":[1,"two"]}`},
		{"params no structure", `{"jsonrpc":"2.0","id":1,"method":"m","params":7}`, `{"jsonrpc":"2.0","id":$ID,"method":"m","params":7}`},
		{"caller key alone", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"io.cyanmycelium/caller":{"as":"root"}}}}`, `{"jsonrpc":"2.0","id":$ID,"method":"m","params":{"_meta":{"traceparent":"$TRACE"}}}`},
		{"caller key", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"a":1, "io.cyanmycelium/caller":1,"b":2}}}`, `{"jsonrpc":"2.0","id":$ID,"method":"m","params":{"_meta":{"traceparent":"$TRACE","a":1, "b":2}}}`},
		{"caller key, escaped", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"io.cyanmycelium\/calle\u0072":1}}}`, `{"jsonrpc":"2.0","id":$ID,"method":"m","params":{"_meta":{"traceparent":"$TRACE"}}}`},
		{"fractional id", `{"jsonrpc":"2.0","id":1.5,"method":"m","params":[]}`, `{"jsonrpc":"2.0","id":$ID,"method":"m","params":[]}`},
		{"client ping", `{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}`, `{"jsonrpc":"2.0","id":$ID,"method":"ping","params":[]}`},
		{"logging level", `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":[]}`, `{"jsonrpc":"2.0","id":$ID,"method":"logging/setLevel","params":[]}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			reply := c.Start(test.sent)
			request := p.Receive()
			id := brokertest.ID(request)
			brokertest.Equal(t, "B>P", strings.Replace(stable(request), id, "$ID", 1), test.want)
			brokertest.Respond(p, request, "{}")
			if a := c.Await(reply); !strings.HasSuffix(a.Body, `,"result":{}}`) {
				t.Errorf("answer %d %s", a.Status, a.Body)
			}
		})
	}
}

// Section 9 item 49 and duplicate keys: what could hide the caller key is refused.
func TestDuplicateKnownKeys(t *testing.T) {
	_, p, c := served(t)
	for member, body := range map[string]string{
		"_meta":                  `{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{},"_meta":{"io.cyanmycelium/caller":1}}}`,
		"params":                 `{"jsonrpc":"2.0","id":1,"method":"m","params":{},"params":{}}`,
		"io.cyanmycelium/caller": `{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"io.cyanmycelium/caller":1,"io.cyanmycelium\/caller":2}}}`,
		"traceparent":            `{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"traceparent":1,"traceparent":2}}}`,
		"method":                 `{"jsonrpc":"2.0","id":1,"method":"m","meth\u006fd":"n"}`,
	} {
		brokertest.Is(t, member, c.Post(body), 400, failure("invalid_request", `Body is not a JSON-RPC message: duplicate member \"`+member+`\"`))
	}
	c.Post(`{"method":"marker"}`)
	brokertest.Equal(t, "the first frame", p.Receive(), `{"method":"marker"}`)
}

// Spec 01 4.2, 4.8, F-20: notifications pass verbatim but for the caller key;
// responses of a client go nowhere.
func TestNotesToProvider(t *testing.T) {
	_, p, c := served(t)
	for _, test := range []struct{ sent, want string }{
		{`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`, `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`},
		{`{"method":"n","params":{"_meta":{"io.cyanmycelium/caller":1}}}`, `{"method":"n","params":{}}`},
		{`{"method":"n","params":{"_meta":{"io.cyanmycelium/caller":1, "k":2}}}`, `{"method":"n","params":{"_meta":{"k":2}}}`},
		{`{"jsonrpc":"2.0","id":"brk-1","result":{}}`, ""},
		{`{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"m"}}`, ""},
	} {
		brokertest.Is(t, test.sent, c.Post(test.sent), 202, "")
		if test.want != "" {
			brokertest.Equal(t, "B>P", p.Receive(), test.want)
		}
	}
	delivered(t, p, c)
}

// F-28, row 41: a cancellation reaches the provider with its own id, for the
// caller's own requests only.
func TestCancellation(t *testing.T) {
	_, p, c := served(t)
	d := another(t, c)
	const cancel = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"r","requestId":%s,"x":1.0}}`
	for _, id := range []string{`1`, `"1"`, `"brk-1"`, `12345678901234567890`} {
		reply := c.Start(`{"jsonrpc":"2.0","id":` + id + `,"method":"slow"}`)
		request := p.Receive()
		for _, foreign := range []string{id, brokertest.ID(request), `"unknown"`} { // by another client
			brokertest.Is(t, "foreign cancellation", d.Post(fmt.Sprintf(cancel, foreign)), 202, "")
		}
		brokertest.Is(t, "a broker id", c.Post(fmt.Sprintf(cancel, brokertest.ID(request))), 202, "")
		brokertest.Is(t, "no request id", c.Post(`{"jsonrpc":"2.0","method":"notifications/cancelled"}`), 202, "")
		brokertest.Is(t, "own cancellation", c.Post(fmt.Sprintf(cancel, id)), 202, "")
		brokertest.Equal(t, "B>P", p.Receive(), fmt.Sprintf(cancel, brokertest.ID(request)))
		brokertest.Respond(p, request, `"too late"`) // it may have answered already
		brokertest.Is(t, "answer", c.Await(reply), 200, `{"jsonrpc":"2.0","id":`+id+`,"result":"too late"}`)
	}
	delivered(t, p, c)
}

// F-24, F-45: 200 clients cut in the middle of a call. Each call is cancelled
// upstream under its broker id, nothing stays pending, late answers cause no
// warning, and another slot is not disturbed.
func TestClientsCutMidCall(t *testing.T) {
	const clients = 200
	b, p, first := served(t)
	q := b.Dedicated(t, "other")
	other := brokertest.NewClient(t, b.MCPURL("other"))
	other.Handshake(q)
	elsewhere := other.Start(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
	elsewhereRequest := q.Receive()
	bystander := first.Start(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
	bystanderRequest := p.Receive()

	ctx, cut := context.WithCancel(t.Context())
	defer cut()
	var ended sync.WaitGroup
	for range clients {
		c := another(t, first)
		ended.Go(func() { _, _ = c.Try(ctx, "POST", `{"jsonrpc":"2.0","id":1,"method":"slow"}`) })
	}
	open := map[string]bool{}
	for range clients {
		open[brokertest.ID(p.Receive())] = true
	}
	b.Pending(t, "s", clients+1)
	cut()
	ended.Wait()
	for range clients {
		got := p.Receive()
		_, rest, _ := strings.Cut(got, `"requestId":`)
		id, _, _ := strings.Cut(rest, ",")
		brokertest.Equal(t, "F-45", got, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`,"reason":"The caller no longer waits for the answer"}}`)
		if !open[id] {
			t.Errorf("cancelled twice, or never asked: %s", id)
		}
		delete(open, id)
		p.Send(`{"jsonrpc":"2.0","id":` + id + `,"result":{}}`)
	}
	b.Pending(t, "s", 1)
	brokertest.Respond(q, elsewhereRequest, "{}")
	brokertest.Is(t, "another slot", other.Await(elsewhere), 200, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	brokertest.Respond(p, bystanderRequest, "{}")
	brokertest.Is(t, "the same slot", first.Await(bystander), 200, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	b.Pending(t, "s", 0)
	if lines := b.Log.Lines("matches no request"); len(lines) != 0 {
		t.Errorf("late answers: %q", lines)
	}
}

// Row 68: isError and JSON-RPC errors of the provider are HTTP 200, as they are.
func TestProviderErrors(t *testing.T) {
	_, p, c := served(t)
	for _, outcome := range []string{
		`"result":{"isError":true,"content":[]}`,
		`"error":{"code":-32602,"message":"bad","data":{"x":1}}`,
		`"error":{"code":1,"message":""}`,
	} {
		reply := c.Start(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)
		p.Send(`{"jsonrpc":"2.0","id":` + brokertest.ID(p.Receive()) + `,` + outcome + `}`)
		brokertest.Is(t, outcome, c.Await(reply), 200, `{"jsonrpc":"2.0","id":1,`+outcome+`}`)
	}
}

// Spec 01 5.12: a stop lets calls in flight finish, then answers the others with
// 503, ends the streams, and says goodbye to providers.
func TestStopWithCallsInFlight(t *testing.T) {
	b, p, c := served(t)
	stream := listen(t, c)
	answered := c.Start(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
	request := p.Receive()
	stopped := make(chan struct{})
	go func() { defer close(stopped); b.Stop(t) }()
	refused(t, b) // no new connection: the stop has begun
	brokertest.Respond(p, request, "{}")
	brokertest.Is(t, "a call that is answered in time", c.Await(answered), 200, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	brokertest.Equal(t, "the stream", stream.Next(), "")
	if code, _ := p.Closed(); code != 1001 {
		t.Errorf("the provider was closed with %d", code)
	}
	<-stopped
}

// The same with a provider that does not answer within the patience of the stop.
func TestStopCutsCalls(t *testing.T) {
	b, p, c := served(t, mcpbroker.WithProviderRequestTimeout(0))
	pending := c.Start(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
	p.Receive()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Broker.Stop(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
	brokertest.Is(t, "the call", c.Await(pending), 503, sessionClosed)
}

// refused waits until the broker takes no connection any more.
func refused(t *testing.T, b *brokertest.Broker) {
	t.Helper()
	eventually(t, "connections are refused", func() bool {
		conn, err := dialer.DialContext(t.Context(), "tcp", b.Host())
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
}
