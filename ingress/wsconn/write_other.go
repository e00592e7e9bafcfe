//go:build !unix

package wsconn

import "syscall"

// writeWithoutWaiting writes nothing: every write has a writer of its own here.
func writeWithoutWaiting(syscall.RawConn, []byte) (int, error) { return 0, nil }
