package wire

// TooManyIsolated refuses a session on an upstream with a process for each.
func TooManyIsolated(slot string, n int) *Error {
	return errorf(CodeUnavailable, `Slot "%s" has %d sessions, each with a process of its own (isolation = "session"), the most it may have; end one first`, slot, n)
}

// UpstreamLost: the upstream ended with the request unanswered; why says how.
func UpstreamLost(slot, why string) *Error {
	return gone(`Provider "%s" disconnected: %s`, slot, why)
}
