package wire

// Texts of the server behind the slot _all (spec 03 3.5).

// UnknownAggregated answers a call of a tool or prompt no member has. A name that
// is missing, and one that the caller may not see, get the same text.
func UnknownAggregated(kind, name string) *Error {
	if name == "" {
		name = "(none)"
	}
	return errorf(CodeInvalidParams, "Unknown aggregated %s: %s", kind, name)
}

// AmbiguousParam answers a call that gives the parameter it is routed by twice.
func AmbiguousParam(name string) *Error {
	return errorf(CodeInvalidParams, `The parameter "%s" is given more than once`, name)
}

// NoLongerConnected answers a call of a tool whose member has left.
func NoLongerConnected(slot string) *Error {
	return errorf(CodeUnavailable, `Provider "%s" is no longer connected`, slot)
}

// LeftOut answers a call of a tool whose slot has a provider that is no member.
func LeftOut(slot, why string) *Error {
	return errorf(CodeUnavailable, `Provider "%s" is left out of _all: %s`, slot, why)
}

// CursorExpired answers a list request whose cursor is of an older catalog.
func CursorExpired() *Error {
	return &Error{Code: CodeInvalidParams, Message: "The catalog has changed since this cursor was given; list again without a cursor"}
}

// UnknownCursor answers a list request with a cursor the broker did not give.
func UnknownCursor() *Error {
	return &Error{Code: CodeInvalidParams, Message: "Unknown cursor; list again without one"}
}
