package egress

import (
	"net/http"
	"strings"

	"mcpbroker/actors/wire"
)

// Router sends a request to the endpoint its path names (spec 01 1.4). A path of
// two segments is a slot and a suffix; everything else is not found.
type Router struct {
	MCP  string // suffix of Streamable HTTP, without slash: "mcp"
	Slot SlotHandler
}

// SlotHandler serves one slot's endpoint.
type SlotHandler interface {
	ServeSlot(w http.ResponseWriter, r *http.Request, slot string)
}

// ServeHTTP implements http.Handler.
func (rt *Router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setCORS(w.Header(), r)
	if r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	slot, suffix, ok := segments(Target(r.RequestURI))
	if ok && suffix == rt.MCP {
		rt.Slot.ServeSlot(w, r, slot)
		return
	}
	w.WriteHeader(http.StatusNotFound)
}

// Target returns a raw request target without scheme and host, which a client
// may send in absolute form.
func Target(target string) string {
	if strings.HasPrefix(target, "/") {
		return target
	}
	if _, rest, ok := strings.Cut(target, "://"); ok {
		if slash := strings.IndexByte(rest, '/'); slash >= 0 {
			return rest[slash:]
		}
		return "/"
	}
	return target
}

// segments splits a path into exactly two decoded, non-empty segments.
func segments(target string) (slot, suffix string, ok bool) {
	path, _, _ := strings.Cut(target, "?")
	var parts [2]string
	n := 0
	for piece := range strings.SplitSeq(path, "/") {
		if piece == "" {
			continue
		}
		if n == len(parts) {
			return "", "", false
		}
		parts[n] = wire.DecodeSlot(piece)
		n++
	}
	return parts[0], parts[1], n == len(parts)
}

// The CORS headers of every response (spec 01 5.8, F-38). The slices are shared
// and must not be changed.
var (
	allowOrigin   = []string{"*"}
	allowMethods  = []string{"GET, POST, DELETE, OPTIONS"}
	allowHeaders  = []string{"Content-Type, Accept, Mcp-Session-Id, Mcp-Protocol-Version, Last-Event-ID, Authorization"}
	exposeHeaders = []string{"Mcp-Session-Id, Mcp-Protocol-Version, WWW-Authenticate"}
)

func setCORS(h http.Header, r *http.Request) {
	h["Access-Control-Allow-Origin"] = allowOrigin
	h["Access-Control-Allow-Methods"] = allowMethods
	h["Access-Control-Expose-Headers"] = exposeHeaders
	if asked := r.Header["Access-Control-Request-Headers"]; len(asked) > 0 {
		h["Access-Control-Allow-Headers"] = asked[:1]
		return
	}
	h["Access-Control-Allow-Headers"] = allowHeaders
}
