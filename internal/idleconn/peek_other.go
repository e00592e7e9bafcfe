//go:build !unix

package idleconn

import "syscall"

// peerClosed cannot tell.
func peerClosed(syscall.RawConn) bool { return false }
