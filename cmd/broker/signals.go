package main

import (
	"os"
	"time"
)

// signalEcho is how soon a signal that comes again is the same one: wrappers such as
// timeout signal the process, and its group besides.
const signalEcho = 500 * time.Millisecond

// arrival is a signal that came. The zero value is none.
type arrival struct {
	signal os.Signal
	at     time.Time
}

func (a arrival) echoedBy(s os.Signal) bool {
	return s == a.signal && time.Since(a.at) < signalEcho
}
