package egress

import (
	"net/http"
	"strings"

	"mcpbroker/actors/wire"
)

// Router sends a request to the endpoint its path names (spec 01 1.4). A path of
// two segments is a slot and a suffix; everything else goes to Fallback.
type Router struct {
	MCP  string // suffix of Streamable HTTP, without slash: "mcp"
	Slot SlotHandler

	SSE    string // suffix of the legacy stream: "sse"; GET only
	Stream SlotHandler

	Messages string // suffix of the legacy post: "messages"; POST only
	Post     SlotHandler

	Beside map[string]http.HandlerFunc // GET and HEAD of whole paths that no slot can have

	Fallback http.Handler // what no endpoint has; nil is 404 with an empty body
}

// SlotHandler serves one slot's endpoint.
type SlotHandler interface {
	ServeSlot(w http.ResponseWriter, r *http.Request, slot string)
}

// SlotFunc is a function as a SlotHandler.
type SlotFunc func(w http.ResponseWriter, r *http.Request, slot string)

// ServeSlot implements SlotHandler.
func (f SlotFunc) ServeSlot(w http.ResponseWriter, r *http.Request, slot string) { f(w, r, slot) }

// ServeHTTP implements http.Handler.
func (rt *Router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setCORS(w.Header(), r)
	if r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if slot, suffix, ok := segments(Target(r.RequestURI)); ok {
		if endpoint := rt.endpoint(r.Method, suffix); endpoint != nil {
			endpoint.ServeSlot(w, r, slot)
			return
		}
	}
	if beside := rt.Beside[Endpoint(r)]; beside != nil && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		beside(w, r)
		return
	}
	if rt.Fallback != nil {
		rt.Fallback.ServeHTTP(w, r)
		return
	}
	w.WriteHeader(http.StatusNotFound)
}

// endpoint is nil for a suffix, or a method on it, that no endpoint has.
func (rt *Router) endpoint(method, suffix string) SlotHandler {
	switch {
	case suffix == rt.MCP:
		return rt.Slot
	case suffix == rt.SSE && method == http.MethodGet:
		return rt.Stream
	case suffix == rt.Messages && method == http.MethodPost:
		return rt.Post
	}
	return nil
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
