// Package wire knows the bytes of the tunnel: JSON-RPC frames, multiplex
// envelopes, slot names in URLs, close reasons, trace contexts and the table of
// error texts.
//
// A frame is scanned once. The scan validates it (strict JSON, UTF-8, bounded
// depth, no duplicate of a member the broker reads) and records where the few
// members the broker cares about stand. Everything the broker changes is
// spliced into a copy by these offsets, so the bytes outside the spliced spans
// arrive as they were sent: key order, number text, escapes, unknown members.
//
// The package holds no goroutine, no clock and no I/O.
package wire
