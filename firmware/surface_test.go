package firmware

import (
	"testing"

	"mcpbroker/brokertest"
)

const (
	echoTool   = `{"name":"echo","description":"Returns its text after the name of the device.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}`
	methodless = `,"error":{"code":-32601,"message":"Method not found"}}`
)

// spec 04 3.10: the server of the samples finds the members of the message itself,
// echoes ids as they are spelled, and answers nothing it should not.
func TestSurface(t *testing.T) {
	t.Parallel()
	s := listen(t)
	startDevice(t, s.port(), "--name", `say "x"`, "--rx=4096")
	p := s.serve("/provider/say%20%22x%22")
	const echoed = `,"result":{"content":[{"type":"text","text":"say \"x\": `
	for _, c := range []struct{ message, answer string }{
		{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"say \"x\"","version":"1.0"}}}`},
		{ping(`"brk-7"`), pong(`"brk-7"`)},
		{ping(`-12345678901234567890`), pong(`-12345678901234567890`)},
		{ping(`"a\u0062\"}{"`), pong(`"a\u0062\"}{"`)},
		{` { "method" : "ping" , "\u0069d" : 1.5e3 } `, pong(`1.5e3`)},
		{`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":2,"result":{"tools":[` + echoTool + `]}}`},
		// D-16: members of the same names stand before, in arguments and in strings.
		{`{"params":{"arguments":{"id":"wrong","method":"ping","text":"\"id\":0,\"method\":\"ping\"}"},"name":"echo"},"id":"right","method":"tools/call"}`,
			`{"jsonrpc":"2.0","id":"right"` + echoed + `\"id\":0,\"method\":\"ping\"}"}]}}`},
		{`{"id":3,"method":"tools\/call","params":{"name":"echo","arguments":{"text":"\u00e4 \ud83d\ude00 ä\n"}}}`,
			`{"jsonrpc":"2.0","id":3` + echoed + `\u00e4 \ud83d\ude00 ä\n"}]}}`},
		{`{"id":4,"method":"tools/call","params":{"name":"echo","arguments":{"text":5}}}`,
			`{"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text","text":"text must be a string"}],"isError":true}}`},
		{`{"id":5,"method":"tools/call","params":{"name":"set_speed","arguments":{"speed_rpm":1}}}`,
			`{"jsonrpc":"2.0","id":5,"error":{"code":-32602,"message":"Unknown tool"}}`},
		{`{"id":6,"method":"tools/call","params":{}}`,
			`{"jsonrpc":"2.0","id":6,"error":{"code":-32602,"message":"tools/call needs the name of a tool"}}`},
		{`{"id":7,"method":"resources/list"}`, `{"jsonrpc":"2.0","id":7` + methodless},
		{`{"id":8,"method":"prompts/list","params":[1,{"a":"]"}]}`, `{"jsonrpc":"2.0","id":8` + methodless},
		{`{"id":{},"method":"ping"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: id or method of a wrong type"}}`},
		{`[` + ping(`9`) + `]`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: not an object"}}`},
		{`{"id":9,"method":"ping"`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`},
		{`{"id":9,"method":"ping"]`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`},
		{`{"id":9,"method":"ping"} x`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`},
	} {
		p.write(frame(fin|opText, c.message))
		brokertest.Equal(t, c.message, p.text(), c.answer)
	}
	// Notifications and responses get no answer, whatever is in them: the next one
	// is the ping's.
	for _, silent := range []string{
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","method":"notifications/x","params":{"id":1}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"method":"ping"}}`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}`,
	} {
		p.write(frame(fin|opText, silent))
	}
	p.serves(t)
}

// The tools and the resource of a pump.
func TestPumpSurface(t *testing.T) {
	t.Parallel()
	s := listen(t)
	startDevice(t, s.port(), "--name", "pump-1")
	p := s.serve("/provider/pump-1")
	status := `{\"speed_rpm\":1200,\"running\":true}`
	result := `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"` + status + `"}],"structuredContent":{"speed_rpm":1200,"running":true}}}`
	ok := `{"jsonrpc":"2.0","id":1,"result":{}}`
	wrong := `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"speed_rpm must be an integer from 0 to 3000"}],"isError":true}}`
	update := `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"device://status"}}`
	set := func(speed string) string {
		return `{"id":1,"method":"tools/call","params":{"name":"set_speed","arguments":{"speed_rpm":` + speed + `}}}`
	}
	on := func(method string) string {
		return `{"id":1,"method":"resources/` + method + `","params":{"uri":"device://status"}}`
	}
	for _, c := range []struct {
		message string
		answers []string
	}{
		{set("1200"), []string{result}},
		{set("-1"), []string{wrong}},
		{set("3001"), []string{wrong}},
		{set("4294967297"), []string{wrong}},
		{set("1.5"), []string{wrong}},
		{set(`"5"`), []string{wrong}},
		{`{"id":1,"method":"tools/call","params":{"name":"read_status"}}`, []string{result}},
		{on("subscribe"), []string{ok}},
		{set("1200"), []string{result}}, // nothing has changed
		{set("0"), []string{`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{\"speed_rpm\":0,\"running\":false}"}],"structuredContent":{"speed_rpm":0,"running":false}}}`, update}},
		{set("1200"), []string{result, update}},
		{on("read"), []string{`{"jsonrpc":"2.0","id":1,"result":{"contents":[{"uri":"device://status","mimeType":"application/json","text":"` + status + `"}]}}`}},
		{on("unsubscribe"), []string{ok}},
		{set("1200"), []string{result}},
		{`{"id":1,"method":"resources/read","params":{"uri":"device://other"}}`, []string{`{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"Resource not found"}}`}},
		{`{"id":1,"method":"prompts/list"}`, []string{`{"jsonrpc":"2.0","id":1` + methodless}},
	} {
		p.write(frame(fin|opText, c.message))
		for _, answer := range c.answers {
			brokertest.Equal(t, c.message, p.text(), answer)
		}
	}
}
