package ingress

import (
	"net/http"
	"strconv"
	"strings"

	"mcpbroker/actors/wire"
)

// Paths are the effective URL paths of the provider side.
type Paths struct {
	Provider  string // prefix of dedicated sockets, "/provider"
	Providers string // path of multiplexed sockets, "/providers"
}

// Role is what an upgrade's URL makes of the peer.
type Role string

const (
	DedicatedProvider   Role = "dedicated-provider"
	MultiplexedProvider Role = "multiplex-provider"
	Client              Role = "client"
)

// Upgrade is the classification of one WebSocket upgrade.
type Upgrade struct {
	Role    Role
	Slot    string
	Refusal string // body of the 400 answer; empty when the upgrade is acceptable
	Hint    string // continues the connect line of what looks like a mistyped URL
}

// Classify applies rules W1 to W6 of spec 01 1.1 to the raw request target. It is
// the same function for authentication and for serving, and compares on the raw
// text, before any decoding.
func Classify(target string, p Paths) Upgrade {
	if target == p.Providers || strings.HasPrefix(target, p.Providers+"?") {
		return Upgrade{Role: MultiplexedProvider}
	}
	if target == p.Provider {
		return Upgrade{Refusal: wire.UpgradeToPrefix(p.Provider, p.Providers)}
	}
	rest, dedicated := strings.CutPrefix(target, p.Provider+"/")
	if !dedicated {
		return client(target, p)
	}
	raw, _, _ := strings.Cut(rest, "?")
	switch {
	case raw == "":
		return Upgrade{Refusal: wire.UpgradeEmptySlot(target, p.Provider, p.Providers)}
	case strings.Contains(raw, "/"):
		return Upgrade{Refusal: wire.UpgradeExtraSegments(target, p.Provider, wire.EncodeSlot(wire.DecodeSlot(raw)))}
	}
	return Upgrade{Role: DedicatedProvider, Slot: wire.DecodeSlot(raw)}
}

func client(target string, p Paths) Upgrade {
	raw, _, _ := strings.Cut(strings.TrimPrefix(target, "/"), "?")
	u := Upgrade{Role: Client, Slot: wire.DecodeSlot(raw)}
	prefix, shared := strings.TrimPrefix(p.Provider, "/"), strings.TrimPrefix(p.Providers, "/")
	if u.Slot == prefix || u.Slot == shared || strings.HasPrefix(u.Slot, shared+"/") || strings.HasPrefix(u.Slot, prefix+"/") {
		u.Hint = wire.LooksLikeProvider(p.Provider, p.Providers)
	}
	return u
}

// IsUpgrade reports a request that asks to leave HTTP.
func IsUpgrade(r *http.Request) bool {
	return len(r.Header["Upgrade"]) > 0 && headerHasToken(r.Header["Connection"], "upgrade")
}

func headerHasToken(values []string, token string) bool {
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(strings.TrimSpace(part), token) {
				return true
			}
		}
	}
	return false
}

// Refuse answers an upgrade without completing it.
func Refuse(w http.ResponseWriter, status int, text string) {
	h := w.Header()
	h.Set("Connection", "close")
	h.Set("Content-Type", "text/html")
	h.Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text))
}
