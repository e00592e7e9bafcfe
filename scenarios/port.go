package scenarios

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// freePort finds a port nobody listens on, and nobody on the next one either. It
// stays below the range from which systems take the ports of outgoing connections,
// so that it is still free when a scenario restarts its broker. No other scenario gets
// one of the two before release.
func freePort() (port int, release func(), err error) {
	const first, last, attempts = 20000, 32767, 100
	for range attempts {
		port := first + rand.IntN(last-first)
		this, err1 := tryPort(port)
		next, err2 := tryPort(port + 1)
		release := func() { closeAll(this, next) }
		if err = errors.Join(err1, err2); err == nil {
			return port, release, nil
		}
		release()
	}
	return 0, nil, fmt.Errorf("find a free port: %w", err)
}

// tryPort tells whether a port is free, and marks it as taken while a broker may not
// listen on it yet, or not at present: with the UDP port of the same number, which
// scenarios of other processes respect as well.
func tryPort(port int) (mark net.PacketConn, err error) {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	if mark, err = net.ListenPacket("udp", address); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		_ = mark.Close()
		return nil, err
	}
	return mark, l.Close()
}

func closeAll(marks ...net.PacketConn) {
	for _, mark := range marks {
		if mark != nil {
			_ = mark.Close()
		}
	}
}
