//go:build unix && !linux

package stdio

import "syscall"

// bindToBroker does nothing: should the broker be killed in the moment between the start
// of a child and its announcement to the guard, the end of its stdin has to tell it.
func bindToBroker(*syscall.SysProcAttr) {}
