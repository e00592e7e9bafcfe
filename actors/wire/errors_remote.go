package wire

// Texts of upstreams that are remote servers (spec 03 4.2).

// RemoteRefused answers a call whose HTTP request the server answered with
// anything but a JSON-RPC message; said is an excerpt of that, or empty.
func RemoteRefused(slot, status, said string) *Error {
	if said != "" {
		said = ": " + said
	}
	return errorf(CodeUnavailable, `Provider "%s": the remote server answered HTTP %s%s`, slot, status, said)
}

// RemoteDenied answers a call for which the broker's own credentials did not do.
func RemoteDenied(slot, status string) *Error {
	return errorf(CodeUnavailable, `Provider "%s": the remote server refused the broker's credentials (HTTP %s); check headers and auth of this upstream`, slot, status)
}

// RemoteUnreachable answers a call that could not be sent.
func RemoteUnreachable(slot, cause string) *Error {
	return errorf(CodeUnavailable, `Provider "%s" cannot be reached: %s. The request was not sent.`, slot, cause)
}

// RemoteLost answers a call that was sent and whose answer did not come whole.
func RemoteLost(slot, cause string) *Error {
	return errorf(CodeUnavailable, `Provider "%s": the answer was lost: %s. The request may have been carried out.`, slot, cause)
}

// RemoteBusy answers a call that finds too many others waiting for the server.
func RemoteBusy(slot string, n int) *Error {
	err := errorf(CodeUnavailable, `Provider "%s" has %d requests in progress at the remote server, and as many waiting as may; send the request again later`, slot, n)
	err.Busy = true
	return err
}
