package slot

import (
	"bytes"
	"slices"

	"mcpbroker/actors/wire"
)

// One initialize speaks for all clients of a slot, and it is often that of a
// probe without any capability. Servers ask only what that one declared, so where
// their questions are relayed the broker declares for everybody what can be asked
// during a call; a client that cannot answer is still never asked (askee).
//
// Roots are left to the client: servers ask for them at once when they are
// declared, outside of any call, where nobody can be asked.

// offered returns an initialize with the capabilities the broker declares.
func (s *State) offered(f *wire.Frame) *wire.Frame {
	params := f.Raw(f.Params)
	wider := s.offer(params)
	if len(wider) == len(params) {
		return f
	}
	offered, _ := wire.Scan(wire.Replace(f, f.Params, wider))
	return &offered
}

// offer does so for the params of an initialize.
func (s *State) offer(params []byte) []byte {
	at := wire.MemberAt(params, "capabilities")
	if !s.cfg.RelayRequests || s.cfg.RelayInitialize || !at.Present() || params[at.Start] != '{' {
		return params
	}
	declared := params[at.Start:at.End]
	var missing []byte
	for _, name := range []string{"sampling", "elicitation"} {
		if !wire.MemberAt(declared, name).Present() {
			missing = append(missing, `"`+name+`":{},`...)
		}
	}
	if len(bytes.TrimSpace(declared[1:len(declared)-1])) == 0 {
		missing = bytes.TrimSuffix(missing, []byte(","))
	}
	return slices.Insert(bytes.Clone(params), int(at.Start)+1, missing...)
}
