package firmware

import (
	"testing"
	"time"

	"mcpbroker/brokertest"
)

func envelope(slot, payload string) string {
	return `{"provider":"` + slot + `","payload":` + payload + `}`
}

const (
	register       = `{"jsonrpc":"2.0","method":"notifications/register"}`
	registerToJoin = `{"jsonrpc":"2.0","method":"notifications/register","params":{"aggregate":true}}`
)

// a device that joins the merged catalog says so first, on every connection.
func TestRegistration(t *testing.T) {
	t.Parallel()
	s := listen(t)
	startDevice(t, s.port(), "--name", "d", "--aggregate")
	for range 2 {
		p := s.serve("/provider/d")
		brokertest.Equal(t, "first frame", p.text(), registerToJoin)
		p.serves(t)
		_ = p.conn.Close()
	}
}

// what passes on a shared socket, to the byte.
func TestSharedSocket(t *testing.T) {
	t.Parallel()
	s := listen(t)
	device := startDevice(t, s.port(), "--name", "line ä", "--multiplex", "--aggregate", "--reregister=200")
	p := s.serve("/providers")
	brokertest.Equal(t, "first registration", p.text(), envelope("line ä", registerToJoin))
	brokertest.Equal(t, "second registration", p.text(), envelope("line ä-b", register))
	device.awaitConnect(1)

	p.write(frame(fin|opText, ` {"x":[{"payload":1}], "payload" : `+ping(`"1"`)+` , "provider":"line \u00e4" } `))
	brokertest.Equal(t, "answer of the first", p.text(), envelope("line ä", pong(`"1"`)))
	p.write(frame(fin|opText, envelope("line ä-b", ping(`2`))))
	brokertest.Equal(t, "answer of the second", p.text(), envelope("line ä-b", pong(`2`)))

	// neither ends the link.
	p.write(frame(fin|opText, envelope("other", ping(`3`))))
	device.next(`^dropped unknown slot `)
	for _, bad := range []string{ping("4"), "[]", "", envelope("", "1"), envelope("line ä", "1") + "x"} {
		p.write(frame(fin|opText, bad))
		device.next(`^dropped no envelope `)
	}

	// refused for now, it is announced again.
	refusal := func(code string) string {
		return frame(fin|opText, envelope("line ä-b", `{"jsonrpc":"2.0","id":null,"error":{"code":`+code+`,"message":"held by \"x\"\n"}}`))
	}
	refused := time.Now()
	p.write(refusal("-32000"))
	device.next(`^event SLOT_REFUSED slot="line ä-b" rpc_code=-32000 reason="held by \\"x\\"\\x0a"`)
	brokertest.Equal(t, "third registration", p.text(), envelope("line ä-b", register))
	if waited := time.Since(refused); waited < 100*time.Millisecond {
		t.Errorf("announced again after %s, want at least half of 200 ms", waited)
	}
	// Forbidden, it is not: the next message is the answer to a ping.
	p.write(refusal("-32001"))
	device.next(`^event SLOT_REFUSED slot="line ä-b" rpc_code=-32001 `)
	p.write(frame(fin|opText, envelope("line ä", ping(`5`))))
	brokertest.Equal(t, "answer", p.text(), envelope("line ä", pong(`5`)))
	if n := device.count(disconnected); n != 0 {
		t.Errorf("the device lost its link %d times", n)
	}
}
