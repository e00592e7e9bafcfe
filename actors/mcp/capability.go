package mcp

import "mcpbroker/actors/wire"

// Capability is what a client declared in its initialize that it can be asked,
// as bits.
type Capability uint8

const (
	CanSample Capability = 1 << iota
	CanElicit
	CanListRoots
)

// DeclaredBy reads the params of an initialize.
func DeclaredBy(params []byte) Capability {
	declared := wire.Member(params, "capabilities")
	if declared == nil {
		return 0
	}
	var c Capability
	for name, bit := range map[string]Capability{"sampling": CanSample, "elicitation": CanElicit, "roots": CanListRoots} {
		if raw := wire.Member(declared, name); len(raw) > 0 && raw[0] == '{' {
			c |= bit
		}
	}
	return c
}

// NeededFor is the capability a client must have declared to be sent a request
// of this method; 0 for one that is never put to a client.
func NeededFor(method []byte) Capability {
	switch string(method) {
	case CreateMessage:
		return CanSample
	case Elicit:
		return CanElicit
	case ListRoots:
		return CanListRoots
	}
	return 0
}
