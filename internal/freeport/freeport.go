// Package freeport finds ports for servers that start later, or end and start again.
package freeport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports come from below the range out of which systems take the ports of connections:
// nobody is given one of them by chance.
const (
	first    = 10000
	last     = 32767
	attempts = 100
)

// Reserve returns a TCP port on which nobody listens, nor on the ones behind it: count in
// a row. No other call, of this process or another, returns one of them before release.
func Reserve(count int) (port int, release func(), err error) {
	for range attempts {
		port := first + rand.IntN(last-first-count)
		if release, err = reserve(port, count); err == nil {
			return port, release, nil
		}
	}
	return 0, nil, fmt.Errorf("find a free port: %w", err)
}

func reserve(port, count int) (release func(), err error) {
	var marks []net.PacketConn
	release = func() {
		for _, mark := range marks {
			_ = mark.Close()
		}
	}
	for n := range count {
		mark, err := take(strconv.Itoa(port + n))
		if err != nil {
			release()
			return nil, err
		}
		marks = append(marks, mark)
	}
	return release, nil
}

// take marks a port that is free, with the UDP port of the same number: the TCP port
// must be there for the server.
func take(port string) (mark net.PacketConn, err error) {
	mark, err = net.ListenPacket("udp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return nil, err
	}
	for _, host := range []string{"127.0.0.1", ""} {
		l, err := net.Listen("tcp", net.JoinHostPort(host, port))
		if err == nil {
			err = l.Close()
		}
		if err != nil {
			return nil, errors.Join(err, mark.Close())
		}
	}
	return mark, nil
}
