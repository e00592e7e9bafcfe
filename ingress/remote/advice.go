package remote

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
)

// A server that is not what the configuration takes it for answers in many ways. What it
// answered is told, and the key that has to be corrected.

const (
	adviceAddress = "; correct url, its path included, or transport"
	adviceHeaders = "; correct headers"
	adviceHTTP    = "; url has to begin with http:// or ws://"
	adviceHTTPS   = "; url has to begin with https:// or wss://"
)

// webPage is the content of pages for browsers, whose text says nothing.
const webPage = "text/html"

// otherContent is an answer in the place of one of MCP.
type otherContent struct {
	kind string // of its content; may be empty
	head string // may be empty
}

func (o *otherContent) Error() string {
	what := "something"
	switch {
	case o.kind == webPage:
		return "the server answered with a web page (" + webPage + "), not with JSON or an event stream"
	case o.kind != "":
		what = short(o.kind)
	}
	text := "the server answered with " + what + ", not with JSON or an event stream"
	if o.head != "" {
		text += ": " + o.head
	}
	return text
}

func contentType(resp *http.Response) string {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return kind
}

// advice names the key to correct where a connection has not come about; empty where
// none is to blame.
func advice(err error) string {
	var status *statusError
	text := err.Error()
	switch {
	case strings.Contains(text, "invalid header field"):
		return adviceHeaders
	case strings.Contains(text, "HTTP response to HTTPS client"), strings.Contains(text, "does not look like a TLS handshake"):
		return adviceHTTP
	case strings.Contains(text, "HTTP request to an HTTPS server"), strings.Contains(text, `malformed HTTP response "\x15\x03`):
		return adviceHTTPS
	case errors.As(err, new(*otherContent)):
		return adviceAddress
	case errors.As(err, &status):
		return status.advice()
	}
	return ""
}

// advice is for a status that says: nothing of the kind is served here.
func (e *statusError) advice() string {
	switch e.code {
	case http.StatusOK, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusUnsupportedMediaType, http.StatusUpgradeRequired:
		return adviceAddress
	}
	return ""
}

// advised words an error, with the advice behind it.
func advised(err error) error {
	if hint := advice(err); !strings.HasSuffix(err.Error(), hint) {
		return fmt.Errorf("%w%s", err, hint)
	}
	return err
}

// redirected says where a redirect leads that was not followed, without the query.
func redirected(resp *http.Response) string {
	to, err := resp.Location()
	if err != nil {
		return "it names no other place; correct the url"
	}
	if !kept(resp.StatusCode) || !sameOrigin(to, resp.Request.URL) {
		return fmt.Sprintf("it points to %s, and only 307 and 308 to the same origin are followed; correct the url", short(place(to)))
	}
	for r := resp.Request; r != nil; {
		if r.URL.String() == to.String() {
			return fmt.Sprintf("its redirects go round in a loop, through %s; correct the url or the server", short(place(to)))
		}
		if r.Response == nil {
			break
		}
		r = r.Response.Request
	}
	return fmt.Sprintf("more than %d redirects in a row, the last one to %s; correct the url", maxRedirects, short(place(to)))
}

// kept reports a redirect that keeps method and body.
func kept(status int) bool {
	return status == http.StatusTemporaryRedirect || status == http.StatusPermanentRedirect
}
