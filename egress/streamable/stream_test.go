package streamable_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"mcpbroker/brokertest"
	"mcpbroker/config"
	"mcpbroker/egress/session"
)

func note(i int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","method":"n/%d"}`, i) }

// delivered makes sure the session has handled everything the provider sent: a
// call's answer travels behind it.
func delivered(t testing.TB, p *brokertest.Socket, c *brokertest.Client) {
	t.Helper()
	reply := c.Start(`{"jsonrpc":"2.0","id":"fence","method":"m"}`)
	brokertest.Respond(p, p.Receive(), "{}")
	brokertest.Is(t, "fence", c.Await(reply), 200, `{"jsonrpc":"2.0","id":"fence","result":{}}`)
}

// Spec 01 5.4, F-35: what comes while no stream is open waits, in order, for the
// first one that opens; a stream's end does not end the session.
func TestBacklog(t *testing.T) {
	b, p, c := served(t)
	for i := 1; i <= 3; i++ {
		p.Send(note(i))
	}
	delivered(t, p, c)
	stream := listen(t, c)
	for i := 1; i <= 3; i++ {
		brokertest.Equal(t, "backlog", stream.Next(), event(strconv.Itoa(i), note(i)))
	}
	p.Send(note(4))
	brokertest.Equal(t, "live", stream.Next(), event("4", note(4)))
	stream.Close()
	b.Sessions(t, "s", 1)
	delivered(t, p, c)
}

// Row 28, spec 01 5.4: the newest stream takes over, the older one ends cleanly,
// and nothing is delivered twice.
func TestSecondStreamTakesOver(t *testing.T) {
	_, p, c := served(t)
	first := listen(t, c)
	p.Send(note(1))
	brokertest.Equal(t, "first stream", first.Next(), event("1", note(1)))
	second := listen(t, c)
	brokertest.Equal(t, "the end of the first", first.Next(), "")
	p.Send(note(2))
	brokertest.Equal(t, "second stream", second.Next(), event("2", note(2)))
	delivered(t, p, c)
}

// Design decision 8: Last-Event-ID resumes behind the event it names.
func TestResume(t *testing.T) {
	_, p, c := served(t)
	for i := 1; i <= 5; i++ {
		p.Send(note(i))
	}
	delivered(t, p, c)
	for _, test := range []struct {
		last string
		from int
	}{
		{"", 1}, {"0", 1}, {"3", 4}, {"4", 5}, {"1", 2}, {"5", 6}, {"99", 6}, {"not a number", 6},
	} {
		c.Header.Set("Last-Event-ID", test.last)
		if test.last == "" {
			c.Header.Del("Last-Event-ID")
		}
		stream := listen(t, c)
		p.Send(`{"method":"marker"}`)
		for i := test.from; i <= 5; i++ {
			brokertest.Equal(t, "after "+test.last, stream.Next(), event(strconv.Itoa(i), note(i)))
		}
		brokertest.Equal(t, "after "+test.last+": the next", tail(stream.Next()), `{"method":"marker"}`)
		stream.Close()
	}
}

// tail is the data of an event.
func tail(block string) string { _, data, _ := strings.Cut(block, "data: "); return data }

// F-35: the history holds the last 1,000 events.
func TestHistoryBound(t *testing.T) {
	_, p, c := served(t)
	const sent = session.HistoryEvents + 100
	for i := 1; i <= sent; i++ {
		p.Send(note(i))
		if i%200 == 0 {
			delivered(t, p, c) // within the queue of the session
		}
	}
	delivered(t, p, c)
	stream := listen(t, c)
	for i := sent - session.HistoryEvents + 1; i <= sent; i++ {
		brokertest.Equal(t, "history", stream.Next(), event(strconv.Itoa(i), note(i)))
	}
}

// Design decision 8: a silent stream carries a comment now and then.
func TestKeepAlive(t *testing.T) {
	b := configured(t, func(c *config.Config) { c.KeepAliveIntervalMs = 5 })
	c := brokertest.NewClient(t, b.MCPURL("s"))
	c.Initialize()
	stream := listen(t, c)
	for range 3 {
		brokertest.Equal(t, "comment", stream.Next(), ": keep-alive")
	}
}

const progress = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":%d,"progressToken":%s,"x":1.0}}`

// F-27, row 43: a progress token is rewritten on its way to the provider and
// restored, type and all, for its owner alone.
func TestProgressIsPrivate(t *testing.T) {
	_, p, c := served(t)
	d := another(t, c)
	mine, theirs := listen(t, c), listen(t, d)
	id := 1
	for _, token := range []string{`"p"`, `0`, `7`, `12345678901234567890`, `1.5`, `"brk-1"`} {
		reply := c.Start(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"progressToken":%s}}}`, token))
		request := p.Receive()
		other := d.Start(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"progressToken":%s}}}`, token))
		otherRequest := p.Receive()
		sent := tokenOf(request)
		if sent == token || sent == tokenOf(otherRequest) {
			t.Fatalf("the provider saw token %s for %s", sent, token)
		}
		for n := range 5 {
			p.Send(fmt.Sprintf(progress, n, sent))
			brokertest.Equal(t, "progress", mine.Next(), event(strconv.Itoa(id), fmt.Sprintf(progress, n, token)))
			id++
		}
		brokertest.Respond(p, request, "{}")
		brokertest.Respond(p, otherRequest, "{}")
		c.Await(reply)
		d.Await(other)
		p.Send(fmt.Sprintf(progress, 9, sent)) // behind the answer: of nobody any more
	}
	p.Send(`{"method":"marker"}`)
	brokertest.Equal(t, "the other client", theirs.Next(), event("1", `{"method":"marker"}`))
	brokertest.Equal(t, "the owner", tail(mine.Next()), `{"method":"marker"}`)
}

func tokenOf(request string) string {
	_, rest, _ := strings.Cut(request, `"progressToken":`)
	end := strings.IndexAny(rest, ",}")
	return rest[:end]
}

// F-27: progress under a token nobody was given reaches nobody, with one warning.
func TestProgressOfNobody(t *testing.T) {
	b, p, c := served(t)
	stream := listen(t, c)
	reply := c.Start(`{"jsonrpc":"2.0","id":1,"method":"m"}`) // asks for no progress
	request := p.Receive()
	for _, token := range []string{`99`, `"x"`, `1`, brokertest.ID(request), `null`, `{}`} {
		p.Send(fmt.Sprintf(progress, 1, token))
	}
	p.Send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{}}`)
	p.Send(`{"method":"marker"}`)
	brokertest.Equal(t, "the first event", stream.Next(), event("1", `{"method":"marker"}`))
	if lines := b.Log.Lines("reported progress under token"); len(lines) != 1 {
		t.Errorf("warnings %q", lines)
	}
	brokertest.Respond(p, request, "{}")
	c.Await(reply)
}

// Progress without a GET stream: the answer of the POST becomes a stream where
// the client accepts one, in order and the answer last; else it waits for the
// next GET.
func TestProgressOnThePost(t *testing.T) {
	_, p, c := served(t)
	const body = `{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"progressToken":"p"}}}`
	c.Header.Set("Accept", "application/json, text/event-stream")
	reply := c.Start(body)
	request := p.Receive()
	p.Send(fmt.Sprintf(progress, 1, tokenOf(request)))
	p.Send(fmt.Sprintf(progress, 2, tokenOf(request)))
	brokertest.Respond(p, request, "{}")
	a := c.Await(reply)
	brokertest.Is(t, "streamed answer", a, 200, "event: message\ndata: "+fmt.Sprintf(progress, 1, `"p"`)+"\n\nevent: message\ndata: "+fmt.Sprintf(progress, 2, `"p"`)+
		"\n\nevent: message\ndata: "+`{"jsonrpc":"2.0","id":1,"result":{}}`+"\n\n")
	brokertest.Equal(t, "content type", a.Header.Get("Content-Type"), "text/event-stream")

	reply = c.Start(body) // no progress comes: plain JSON
	brokertest.Respond(p, p.Receive(), "{}")
	a = c.Await(reply)
	brokertest.Is(t, "plain answer", a, 200, `{"jsonrpc":"2.0","id":1,"result":{}}`)

	c.Header.Set("Accept", "application/json")
	reply = c.Start(body)
	request = p.Receive()
	p.Send(fmt.Sprintf(progress, 3, tokenOf(request)))
	brokertest.Respond(p, request, "{}")
	brokertest.Is(t, "a client without streams", c.Await(reply), 200, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	brokertest.Equal(t, "its backlog", listen(t, c).Next(), event("1", fmt.Sprintf(progress, 3, `"p"`)))
}

// A session that ends behind the first progress says so to its caller on the stream, by
// the id of the call: there is no status for it any more.
func TestSessionEndsBehindProgress(t *testing.T) {
	_, p, c := served(t)
	c.Header.Set("Accept", "application/json, text/event-stream")
	reply := c.Start(`{"jsonrpc":"2.0","id":"x","method":"m","params":{"_meta":{"progressToken":"p"}}}`)
	first := fmt.Sprintf(progress, 1, tokenOf(p.Receive()))
	stream := listen(t, c)
	p.Send(first)
	p.Send(`{"method":"marker"}`) // is on its way once the progress is
	brokertest.Equal(t, "the marker", tail(stream.Next()), `{"method":"marker"}`)
	brokertest.Is(t, "DELETE", c.Do("DELETE", ""), 204, "")
	brokertest.Is(t, "the call", c.Await(reply), 200, "event: message\ndata: "+fmt.Sprintf(progress, 1, `"p"`)+
		"\n\nevent: message\ndata: "+`{"jsonrpc":"2.0","id":"x","error":{"code":-32000,"message":"Session closed"}}`+"\n\n")
}
