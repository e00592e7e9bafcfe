package mcpbroker_test

import (
	"fmt"
	"syscall"
)

// What net.Listen reports, wrapped as it wraps.
var (
	errInUse     = fmt.Errorf("bind: %w", syscall.EADDRINUSE)
	errDenied    = fmt.Errorf("bind: %w", syscall.EACCES)
	errNoAddress = fmt.Errorf("bind: %w", syscall.EADDRNOTAVAIL)
)
