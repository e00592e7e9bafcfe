package static

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"

	"mcpbroker/actors/wire"
	"mcpbroker/egress"
)

// Mount publishes the files below a directory under a URL prefix: "/", or a path
// that starts with a slash and does not end with one.
type Mount struct{ Prefix, Dir string }

// Files serves mounts. The zero value has none and answers 404 with an empty
// body.
type Files struct {
	mounts []mount // longest prefix first
}

type mount struct {
	prefix []string // decoded segments, none for the root
	dir    string
}

// New returns the mounts whose directory exists; one without is skipped with a
// warning. A directory is opened anew for each request, so that one that is
// replaced while the broker runs is served as it is then.
func New(mounts []Mount, log *slog.Logger) *Files {
	f := &Files{}
	for _, m := range mounts {
		root, err := os.OpenRoot(m.Dir)
		if err != nil {
			log.Warn(fmt.Sprintf("[mcp-broker] www.mounts entry %q is skipped: %v", m.Prefix, err))
			continue
		}
		_ = root.Close()
		prefix, _ := resolve(m.Prefix)
		f.mounts = append(f.mounts, mount{prefix, m.Dir})
	}
	slices.SortStableFunc(f.mounts, func(a, b mount) int { return cmp.Compare(len(b.prefix), len(a.prefix)) })
	return f
}

// ServeHTTP implements http.Handler for what the router has no endpoint for. It
// reads the path from the raw request target.
func (f *Files) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, _, _ := strings.Cut(egress.Target(r.RequestURI), "?")
	if path == SamplesIndex && r.Method == http.MethodGet {
		f.serveSamples(w)
		return
	}
	if len(f.mounts) == 0 {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	segments, where := resolve(path)
	m := f.match(segments)
	switch {
	case where == outside && f.root() != nil, where == forged && m != nil:
		refuse(w, http.StatusForbidden)
	case m == nil, where == outside, !strings.HasPrefix(path, "/"):
		w.Header().Set("Content-Type", "text/plain")
		refuse(w, http.StatusNotFound)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD, OPTIONS")
		refuse(w, http.StatusMethodNotAllowed)
	default:
		m.serve(w, r, segments[len(m.prefix):], strings.HasSuffix(path, "/"))
	}
}

// match returns the mount with the longest prefix, nil when none covers the path.
func (f *Files) match(segments []string) *mount {
	for i := range f.mounts {
		n := len(f.mounts[i].prefix)
		if n <= len(segments) && slices.Equal(f.mounts[i].prefix, segments[:n]) {
			return &f.mounts[i]
		}
	}
	return nil
}

// root is the mount at exactly "/".
func (f *Files) root() *mount { return f.match(nil) }

// place is where a path leads.
type place uint8

const (
	inside  place = iota
	outside       // above "/"
	forged        // an escaped separator or NUL hides in a segment
)

// resolve splits a raw path into decoded segments without "." and "..", which
// count whether they are escaped or not (F-40). It decodes once; a malformed
// escape stands for itself, as in the name of a slot.
func resolve(path string) (segments []string, where place) {
	for piece := range strings.SplitSeq(path, "/") {
		switch piece = wire.DecodeSlot(piece); {
		case piece == "" || piece == ".":
		case piece != "..":
			segments = append(segments, piece)
			if strings.ContainsAny(piece, "/\\\x00") {
				where = max(where, forged)
			}
		case len(segments) == 0:
			return nil, outside
		default:
			segments = segments[:len(segments)-1]
		}
	}
	return segments, where
}

// texts are the bodies of refusals (spec 01 5.9).
func text(status int) string {
	switch status {
	case http.StatusForbidden:
		return "Forbidden"
	case http.StatusNotFound:
		return "Not found"
	case http.StatusMethodNotAllowed:
		return "Method not allowed: files are read with GET and HEAD"
	}
	return "The file cannot be read now"
}

// refuse writes a refusal; without a content type set before, it has none.
func refuse(w http.ResponseWriter, status int) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	if h.Get("Content-Type") == "" {
		h["Content-Type"] = nil // keeps net/http from guessing one
	}
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text(status)))
}
