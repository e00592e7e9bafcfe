//go:build unix

package firmwaretest

import (
	"os"
	"syscall"
)

// exclusive waits until no other process holds the file.
func exclusive(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err != syscall.EINTR {
			return err
		}
	}
}
