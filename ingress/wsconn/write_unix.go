//go:build unix

package wsconn

import (
	"errors"
	"syscall"
)

// writeWithoutWaiting writes as much of b as the socket takes at once.
func writeWithoutWaiting(raw syscall.RawConn, b []byte) (n int, err error) {
	outer := raw.Write(func(fd uintptr) bool {
		for {
			if n, err = syscall.Write(int(fd), b); !errors.Is(err, syscall.EINTR) {
				return true
			}
		}
	})
	if n < 0 {
		n = 0
	}
	if errors.Is(err, syscall.EAGAIN) {
		err = nil
	}
	return n, errors.Join(err, outer)
}
