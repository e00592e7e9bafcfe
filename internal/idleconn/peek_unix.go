//go:build unix

package idleconn

import (
	"errors"
	"syscall"
)

// peerClosed looks for the end of the stream without taking anything from it. It must
// not wait for the read lock of the connection: whoever keeps it idle is reading.
func peerClosed(raw syscall.RawConn) bool {
	var n int
	var err error
	outer := raw.Control(func(fd uintptr) {
		var one [1]byte
		for {
			n, _, err = syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
			if !errors.Is(err, syscall.EINTR) {
				return
			}
		}
	})
	if errors.Is(err, syscall.EAGAIN) {
		return false
	}
	return outer != nil || err != nil || n <= 0
}
