package ingress_test

import (
	"strings"
	"testing"

	"mcpbroker/brokertest"
)

// hard is a params object whose bytes no re-encoding leaves alone: key order,
// blanks, big and odd numbers, escapes, raw separators, unknown and repeated
// keys (F-22, rows 58, 61). It carries a valid traceparent, so that nothing is
// inserted.
const hard = ` { "zeta" : 12345678901234567890 , "alpha":-0.10E+400,"n":1.0,"esc":"\u00e9\/\ud83c\udf89\u2028","raw":"é🎉` +
	"\u2028\u2029\u0085\u007f" + `","x-unknown":[1, 2],"x-unknown":{"b":1,"a":2},"":null,` +
	`"_meta":{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","other":{} , "x-unknown":1e3,"x-unknown":2}}  `

// Section 9 item 50: a valid traceparent is left as it is.
func TestBytesUnchanged(t *testing.T) {
	ids := []string{`12345678901234567890`, `1.0`, `-0`, `1e2`, `"\u0061/b"`, `"é"`, `""`}
	onEach(t, func(t *testing.T, _ *brokertest.Broker, p brokertest.Provider, c *brokertest.Client) {
		for _, id := range ids {
			reply := c.Start(`{"params":` + hard + `,"id" : ` + id + `,"extra":0.0,"method":"tools\/call","extra":1,"jsonrpc":"2.0"}`)
			request := p.Receive()
			broker := brokertest.ID(request)
			equal(t, "request", request, `{"params":`+hard+`,"id" : `+broker+`,"extra":0.0,"method":"tools\/call","extra":1,"jsonrpc":"2.0"}`)
			p.Send(`{"result":` + hard + `, "id":` + broker + ` ,"x":1, "x":2,"jsonrpc":"2.0"}`)
			equal(t, "answer", c.Await(reply).Body, `{"result":`+hard+`, "id":`+id+` ,"x":1, "x":2,"jsonrpc":"2.0"}`)

			reply = c.Start(`{"jsonrpc":"2.0","id":` + id + `,"method":"m","params":` + hard + `}`)
			p.Send(`{"error":{"message":"\u006d","code":-32602,"data":` + hard + `},"jsonrpc":"2.0","id":` + brokertest.ID(p.Receive()) + `}`)
			equal(t, "error (row 68)", c.Await(reply).Body, `{"error":{"message":"\u006d","code":-32602,"data":`+hard+`},"jsonrpc":"2.0","id":`+id+`}`)
		}
		note := `{"jsonrpc":"2.0" , "method":"n","params":` + hard + `}`
		c.Post(note)
		equal(t, "client notification", p.Receive(), note)

		stream := c.Listen()
		stream.Next()
		p.Send(note)
		equal(t, "provider notification", stream.Next(), "event: message\nid: 1\ndata: "+note)
	})
}

// Row 56: messages around 64 KiB, of 1 MiB and of the default limit, both ways.
func TestLargeMessages(t *testing.T) {
	onEach(t, func(t *testing.T, _ *brokertest.Broker, p brokertest.Provider, c *brokertest.Client) {
		for _, size := range []int{65_535, 65_536, 65_537, 1 << 20, 4<<20 - 1024} {
			body := strings.Repeat("é", size/2)
			reply := c.Start(`{"jsonrpc":"2.0","id":1,"method":"m","params":["` + body + `"]}`)
			request := p.Receive()
			id := brokertest.ID(request)
			if request != `{"jsonrpc":"2.0","id":`+id+`,"method":"m","params":["`+body+`"]}` {
				t.Errorf("%d bytes to the provider: %d bytes %.100s", size, len(request), request)
			}
			p.Send(`{"jsonrpc":"2.0","id":` + id + `,"result":"` + body + `"}`)
			if a := c.Await(reply); a.Body != `{"jsonrpc":"2.0","id":1,"result":"`+body+`"}` {
				t.Errorf("%d bytes to the client: %d bytes %.100s", size, len(a.Body), a.Body)
			}
		}
	})
}
