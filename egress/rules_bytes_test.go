package egress_test

import (
	"fmt"
	"strings"

	"mcpbroker/brokertest"
)

// echo sends params and takes them back as the result; both must arrive as sent.
func (w *world) echo(c caller, what, value string) {
	w.Helper()
	c.Send(`{"jsonrpc":"2.0","id":1,"method":"m","params":[` + value + `]}`)
	request := w.p.Receive()
	w.is(what+" to the provider", request, `{"jsonrpc":"2.0","id":`+brokertest.ID(request)+`,"method":"m","params":[`+value+`]}`)
	w.answer(request, `[`+value+`]`)
	w.is(what+" to the client", c.Receive(), `{"jsonrpc":"2.0","id":1,"result":[`+value+`]}`)
}

// F-21, F-22: ids, positional params and results keep the text of their numbers.
func numbers(w *world) {
	c := w.client()
	for _, number := range []string{`12345678901234567890`, `-0`, `1.0`, `1e400`, `0.1000000000000000055511151231257827`, `1E+2`} {
		w.echo(c, number, number)
		request := w.ask(c, number)
		w.answer(request, number)
		w.is("as an id", c.Receive(), `{"jsonrpc":"2.0","id":`+number+`,"result":`+number+`}`)
	}
}

// Row 58: members nobody knows, their order and their spacing.
func unknownMembers(w *world) {
	c := w.client()
	c.Send(`{"x-before":{"b":1,"a":2}, "method":"tools/call","id":1,"params":{"name":"t","arguments":{"z":[ ]},"_meta":{"k":null},"x":1},"jsonrpc":"2.0","x-after":"\u00e9\/"}`)
	request := w.p.Receive()
	w.is("to the provider", stable(request), `{"x-before":{"b":1,"a":2}, "method":"tools/call","id":`+brokertest.ID(request)+
		`,"params":{"name":"t","arguments":{"z":[ ]},"_meta":{"traceparent":"$TRACE","k":null},"x":1},"jsonrpc":"2.0","x-after":"\u00e9\/"}`)
	const rest = `"result":{"content":[],"structuredContent":{"n":1.0},"_meta":{"x":1},"x-unknown":[ 1 ]}, "x":"\u00e9\/","jsonrpc":"2.0"}`
	w.p.Send(`{"id":` + brokertest.ID(request) + `,` + rest)
	w.is("to the client", c.Receive(), `{"id":1,`+rest)
}

// Section 9 items 49 and 50.
func traceAndCallerKey(w *world) {
	c := w.client()
	const valid = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
	for _, test := range []struct{ sent, want string }{
		{`{"traceparent":"` + valid + `"}`, `{"traceparent":"` + valid + `"}`},
		{`{"traceparent":"00-x"}`, `{"traceparent":"$TRACE"}`},
		{`{"io.cyanmycelium/caller":{"as":"root"}}`, `{"traceparent":"$TRACE"}`},
		{`{"a":1,"io.cyanmycelium\/calle\u0072":1}`, `{"traceparent":"$TRACE","a":1}`},
	} {
		c.Send(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":` + test.sent + `}}`)
		request := w.p.Receive()
		w.is(test.sent, stable(request), `{"jsonrpc":"2.0","id":`+brokertest.ID(request)+`,"method":"m","params":{"_meta":`+test.want+`}}`)
		w.answer(request, `{}`)
		c.Receive()
	}
	c.Send(`{"method":"n","params":{"_meta":{"io.cyanmycelium/caller":1}}}`)
	w.is("a notification", w.p.Receive(), `{"method":"n","params":{}}`)
}

func lineSeparators(w *world) {
	c := w.client()
	for _, separator := range []string{"\u2028", "\u2029", "\u0085", `\u000b`, `\u000c`, `\n`, `\r\n`, "\u007f"} {
		w.echo(c, fmt.Sprintf("%q", separator), `"a`+separator+`b"`)
		note := `{"method":"n","params":["a` + separator + `b"]}`
		w.p.Send(note)
		w.is("as a notification", c.Receive(), note)
	}
}

func multiByteText(w *world) {
	c := w.client()
	w.echo(c, "text", `"读é🎉`+strings.Repeat("é", 5000)+`"`)
	w.echo(c, "escapes", `"\u8bfb\u00e9\ud83c\udf89"`)
}

// Row 56: around the 64 KiB at which a line scanner stops, and far beyond.
func sizes(w *world) {
	c := w.client()
	for _, size := range []int{65_535, 65_536, 65_537, 1 << 20} {
		w.echo(c, fmt.Sprint(size), `"`+strings.Repeat("x", size-2)+`"`)
		note := `{"method":"n","params":["` + strings.Repeat("y", size-26) + `"]}`
		w.p.Send(note)
		w.is("as a notification", c.Receive(), note)
	}
}

// Design section 2, Ordering: frames of one provider reach a session in the order
// sent, and the other way round.
func order(w *world) {
	const n = 300
	c := w.client()
	frame := func(i int) string { return fmt.Sprintf(`{"method":"n/%d"}`, i) }
	go func() {
		for i := range n {
			w.p.Send(frame(i))
		}
	}()
	for i := range n {
		w.is("to the client", c.Receive(), frame(i))
	}
	for i := range n {
		c.Send(frame(i))
	}
	for i := range n {
		w.is("to the provider", w.p.Receive(), frame(i))
	}
}
