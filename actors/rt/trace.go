package rt

import (
	"encoding/binary"
	"math/rand/v2"

	"mcpbroker/actors/wire"
)

// FreshTraceparent makes a traceparent for a request that brought none. Its ids need
// to be distinct, not secret.
func FreshTraceparent() string {
	var random [24]byte
	for at := 0; at < len(random); at += 8 {
		binary.LittleEndian.PutUint64(random[at:], rand.Uint64())
	}
	return wire.Traceparent(random)
}
