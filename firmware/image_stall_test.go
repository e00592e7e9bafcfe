package firmware

import (
	"io"
	"strings"
	"testing"
)

// serveBoard completes the next handshake, whatever host it names: a board dials its
// emulator's gateway.
func (s *wsServer) serveBoard() *wsPeer {
	s.t.Helper()
	p := s.accept()
	var key string
	for line := p.line(); line != ""; line = p.line() {
		if value, ok := strings.CutPrefix(line, "Sec-WebSocket-Key: "); ok {
			key = value
		}
	}
	p.write(accepted(key))
	return p
}

// D-04 on a board: a peer that sends and does not read ends a send after its
// timeout, although both TCP windows are closed by then and the two stacks answer
// each other without end. The next connection serves.
func TestBoardPeerDoesNotRead(t *testing.T) {
	for _, i := range []image{cortexM3, rv32} {
		t.Run(i.name, func(t *testing.T) {
			t.Parallel()
			s := listen(t)
			device := startImage(t, i, s.port(), "--name", "d", "--send-timeout", "4000")
			p := s.serveBoard()
			fed := make(chan struct{})
			go func() {
				defer close(fed)
				message := frame(fin|opText, ping(`"`+strings.Repeat("i", 3000)+`"`))
				for {
					if _, err := io.WriteString(p.conn, message); err != nil {
						return
					}
				}
			}()
			device.next(disconnected + `error="[^"]*" detail="send timed out" `)
			_ = p.conn.Close()
			<-fed
			s.serveBoard().serves(t)
		})
	}
}
