package wire

// WebSocket close codes the broker sends (RFC 6455 7.4).
const (
	CloseGoingAway     = 1001 // the broker stops
	CloseInvalidText   = 1007 // a message that is not UTF-8
	ClosePolicy        = 1008 // a refusal: the reason says what to do
	CloseTooBig        = 1009 // a message over the limit
	CloseInternalError = 1011 // the broker failed
	CloseTryLater      = 1013 // the peer reads too slowly, or there is no room
)
