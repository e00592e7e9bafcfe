package rt

// Credits bound the frames a socket's reader may have under way. The reader
// takes one before it posts a frame; whoever deals with the frame gives it back.
// Without a credit the reader stops reading, and TCP pushes back on the peer.
type Credits chan struct{}

// NewCredits returns n credits.
func NewCredits(n int) Credits { return make(Credits, n) }

// Take waits for a credit; false when done was closed first.
func (c Credits) Take(done <-chan struct{}) bool {
	select {
	case c <- struct{}{}:
		return true
	default:
	}
	select {
	case c <- struct{}{}:
		return true
	case <-done:
		return false
	}
}

// Give returns a credit. It never blocks.
func (c Credits) Give() {
	select {
	case <-c:
	default:
	}
}
