package firmware

import "testing"

// stackWithin checks what the image says of its stack after a loss: the most it has
// ever used, measured on paint.
func (p *process) stackWithin(bytes int) {
	p.t.Helper()
	used := number(p.t, p.next(`^stack used=(\d+)$`)[1])
	if used == 0 || used > bytes {
		p.t.Errorf("the image used %d bytes of stack, want at most %d", used, bytes)
	}
}

// Spec 04 section 4: the stack is bounded, the application's and lwIP's part
// included: handshake, registration, calls of both sizes and the loss of the link.
func TestBoardStack(t *testing.T) {
	for _, i := range []image{cortexM3, rv32} {
		for _, mode := range []string{"--aggregate", "--multiplex"} {
			t.Run(i.name+mode, func(t *testing.T) {
				b := startBroker(t, "")
				p := startImage(t, i, b.port, "--name", "pump-1", mode)
				p.awaitConnect(1)
				s := open(t, b.mcp("pump-1"), "pump-1")
				s.tools()
				s.echo("pump-1", "short")
				s.echo("pump-1", string(make([]byte, 400)))
				b.kill()
				p.next(`^event DISCONNECTED `)
				p.stackWithin(2 << 10)
			})
		}
	}
}
