package remote

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbroker/actors/wire"
)

// 07 row 80: exactly the configured headers are sent, on every method.
func TestHeaders(t *testing.T) {
	s := newServer(t)
	s.stream = func(w http.ResponseWriter, r *http.Request) { events(w); <-r.Context().Done() }
	b := connect(t, Config{URL: s.URL, Headers: map[string]string{"x-api-key": "k-123456", "Authorization": "Basic abc", "Host": "elsewhere.example"}, Auth: Auth{Bearer: "unused"}})
	b.handshake()
	stream := receive(t, s.gets, "GET")
	b.driver.Stop(patience)
	b.ended()
	close(s.log)
	all := []seen{stream}
	for got := range s.log {
		all = append(all, got)
	}
	if len(all) != 4 {
		t.Errorf("%d requests, want GET, two POST and DELETE", len(all))
	}
	for _, got := range all {
		ours := map[string]string{}
		for name, values := range got.header {
			switch name {
			case "Accept", "Content-Type", "Content-Length", sessionHeader, versionHeader:
			default:
				ours[name] = strings.Join(values, ",")
			}
		}
		want := map[string]string{"X-Api-Key": "k-123456", "Authorization": "Basic abc", "User-Agent": "broker/1"}
		if diff := cmp.Diff(want, ours); diff != "" {
			t.Errorf("%s (-want +got):\n%s", got.method, diff)
		}
	}
}

// A static bearer is sent; a server that echoes it in an error does not make it known.
func TestSecretsAreMasked(t *testing.T) {
	s := newServer(t)
	s.call = func(w http.ResponseWriter, r *http.Request, _ *wire.Frame) {
		http.Error(w, "bad: "+r.Header.Get("Authorization")+" "+r.Header.Get("X-Key")+" "+r.URL.RawQuery, http.StatusBadGateway)
	}
	b := connect(t, Config{URL: s.URL + "?key=q-secret-q", Auth: Auth{Bearer: "b-secret-b"}, Headers: map[string]string{"X-Key": "h-secret-h"}})
	b.handshake()
	b.send(request(2, "a"))
	b.expect(refusal(2, wire.RemoteRefused("far", "502 Bad Gateway", "bad: Bearer *** *** key=***")))
	s.set(func() {
		s.before = func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
			http.Error(w, "not with "+r.Header.Get("Authorization"), http.StatusUnauthorized)
			return true
		}
	})
	b2 := connect(t, Config{URL: s.URL, Auth: Auth{Bearer: "b-secret-b"}})
	b2.send(initialize)
	b2.expectEnd("the server answered HTTP 401 Unauthorized: not with Bearer ***", true)
	if strings.Contains(b.log.String()+b2.log.String(), "secret") {
		t.Error("a secret is in the log")
	}
}

// authority is an authorization server that issues token-1, token-2 and so on.
type authority struct {
	*httptest.Server
	mu     sync.Mutex
	n      int
	forms  []url.Values
	users  []string
	answer func(w http.ResponseWriter, r *http.Request) bool
}

func newAuthority(t *testing.T) *authority {
	a := &authority{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		defer a.mu.Unlock()
		_ = r.ParseForm()
		user, password, _ := r.BasicAuth()
		a.forms, a.users = append(a.forms, r.PostForm), append(a.users, user+":"+password)
		if a.answer != nil && a.answer(w, r) {
			return
		}
		a.n++
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token":"token-%d","token_type":"Bearer","expires_in":3600}`, a.n)
	}))
	t.Cleanup(a.Close)
	return a
}

// guarded makes s take one token only.
func guarded(s *server, token func() string) {
	s.before = func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
		if r.Header.Get("Authorization") == "Bearer "+token() {
			return false
		}
		http.Error(w, "expired", http.StatusUnauthorized)
		return true
	}
}

func (a *authority) credentials() Auth {
	return Auth{ClientCredentials: &ClientCredentials{TokenURL: a.URL + "/token", ClientID: "me:1", ClientSecret: "s/cret-value", Scopes: []string{"a", "b"}}}
}

// The token is fetched once, kept, and fetched again for a 401 once; the message that
// met the 401 is sent again.
func TestClientCredentials(t *testing.T) {
	a, s := newAuthority(t), newServer(t)
	var mu sync.Mutex
	valid := "token-1"
	guarded(s, func() string { mu.Lock(); defer mu.Unlock(); return valid })
	b := connect(t, Config{URL: s.URL + "/mcp?x=1", Auth: a.credentials()})
	b.handshake()
	b.send(request(2, "a"))
	b.expect(response(2, "a"))
	mu.Lock()
	valid = "token-2"
	mu.Unlock()
	b.send(request(3, "a"))
	b.expect(response(3, "a"))
	a.mu.Lock()
	defer a.mu.Unlock()
	form := url.Values{"grant_type": {"client_credentials"}, "scope": {"a b"}, "resource": {s.URL + "/mcp"}}
	if diff := cmp.Diff([]url.Values{form, form}, a.forms); diff != "" {
		t.Errorf("token requests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"me%3A1:s%2Fcret-value", "me%3A1:s%2Fcret-value"}, a.users); diff != "" {
		t.Errorf("credentials (-want +got):\n%s", diff)
	}
}

// A server that refuses fresh tokens as well is asked once more and no further.
func TestClientCredentialsDenied(t *testing.T) {
	a, s := newAuthority(t), newServer(t)
	guarded(s, func() string { return "none" })
	b := connect(t, Config{URL: s.URL, Auth: a.credentials()})
	b.send(initialize)
	b.expectEnd("the server answered HTTP 401 Unauthorized: expired", true)
	if a.n != 2 {
		t.Errorf("%d tokens were fetched, want 2", a.n)
	}
}

// Credentials the authorization server wants in the body are sent there from then on.
func TestClientCredentialsInBody(t *testing.T) {
	a, s := newAuthority(t), newServer(t)
	a.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.PostForm.Get("client_secret") == "s/cret-value" && r.PostForm.Get("client_id") == "me:1" {
			return false
		}
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	b := connect(t, Config{URL: s.URL, Auth: a.credentials()})
	b.handshake()
	if diff := cmp.Diff([]string{"me%3A1:s%2Fcret-value", ":"}, a.users); diff != "" {
		t.Errorf("credentials (-want +got):\n%s", diff)
	}
}

// What goes wrong at the authorization server is said without the secret.
func TestTokenFailures(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		want   string
		denied bool
	}{
		{400, `{"error":"invalid_client","error_description":"no such s/cret-value"}`,
			"fetch an access token: the authorization server refused the client credentials (HTTP 400 Bad Request): invalid_client: no such ***", true},
		{503, "", "it cannot be reached: fetch an access token: the authorization server answered HTTP 503 Service Unavailable", false},
		{200, "<html>", "it cannot be reached: fetch an access token: the authorization server's answer is not the JSON of a token", false},
		{200, "{}", "it cannot be reached: fetch an access token: the authorization server's answer holds no access_token", false},
		{200, `{"access_token":"x","token_type":"mac"}`, `it cannot be reached: fetch an access token: the authorization server issued a token of type "mac", not bearer`, false},
		{302, "", "it cannot be reached: fetch an access token: the authorization server answered HTTP 302 Found", false},
	} {
		a, s := newAuthority(t), newServer(t)
		a.answer = func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
			w.WriteHeader(c.status)
			_, _ = fmt.Fprint(w, c.body)
			return true
		}
		b := connect(t, Config{URL: s.URL, Auth: a.credentials()})
		b.send(initialize)
		b.expectEnd(c.want, c.denied)
	}
}

// A token is renewed 30 s before its end, a short one at half of its life; without an
// end it is kept until it is refused.
func TestTokenLife(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for seconds, want := range map[string]time.Duration{"3600": 3570 * time.Second, "40": 20 * time.Second, "1.5": 750 * time.Millisecond, "1e300": 1e9*time.Second - tokenLeeway} {
		g := grant{}
		g.ExpiresIn = jsonNumber(seconds)
		if got := g.end(now).Sub(now); got != want {
			t.Errorf("%s s: used for %s, want %s", seconds, got, want)
		}
	}
	for _, none := range []string{"", "0", "-5", "soon"} {
		g := grant{ExpiresIn: jsonNumber(none)}
		if !g.end(now).IsZero() {
			t.Errorf("%q has an end", none)
		}
	}
}

// 07 row 70: 307 and 308 on the same origin keep method, body and headers; anything
// else is an error, and no other origin is told anything.
func TestRedirects(t *testing.T) {
	stranger := newServer(t)
	moved := func(status int, said string) string {
		return refusal(2, wire.RemoteRefused("far", fmt.Sprint(status, " ", http.StatusText(status)), said))
	}
	for _, c := range []struct {
		status int
		to     string
		want   string
	}{
		{307, "/mcp/", response(2, "a")},
		{308, "/mcp/", response(2, "a")},
		{301, "/mcp/?t=1", moved(301, "it points to ORIGIN/mcp/, and only 307 and 308 to the same origin are followed; correct the url")},
		{302, "/mcp/", moved(302, "it points to ORIGIN/mcp/, and only 307 and 308 to the same origin are followed; correct the url")},
		{303, "", moved(303, "it names no other place; correct the url")},
		{307, strings.Replace(stranger.URL, "//", "//me:pw@", 1) + "/mcp/?t=1", moved(307, "it points to "+stranger.URL+"/mcp/, and only 307 and 308 to the same origin are followed; correct the url")},
		{308, "/mcp", moved(308, "its redirects go round in a loop, through ORIGIN/mcp; correct the url or the server")},
		{308, "/mcp?more", moved(308, "more than 3 redirects in a row, the last one to ORIGIN/mcp; correct the url")},
	} {
		t.Run(fmt.Sprint(c.status, c.to), func(t *testing.T) {
			s := newServer(t)
			b := connect(t, Config{URL: s.URL + "/mcp", Headers: map[string]string{"X-Key": "k-123456"}})
			b.handshake()
			receive(t, s.gets, "GET")
			s.took("POST  " + initialize)
			s.took("POST session-1 " + initialized)
			s.set(func() {
				s.before = func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
					if r.URL.Path == "/mcp" && r.Method == http.MethodPost {
						if c.to != "" {
							w.Header().Set("Location", strings.Replace(c.to, "?more", "?more="+r.URL.RawQuery+"x", 1))
						}
						w.WriteHeader(c.status)
					}
					return r.URL.Path == "/mcp" && r.Method == http.MethodPost
				}
			})
			b.send(request(2, "a"))
			b.expect(strings.Replace(c.want, "ORIGIN", s.URL, 1))
			s.took("POST session-1 " + request(2, "a"))
			if strings.Contains(c.want, "result") {
				again := s.took("POST session-1 " + request(2, "a"))
				equal(t, "header", again.header.Get("X-Key"), "k-123456")
			}
		})
	}
	if len(stranger.log)+len(stranger.gets) != 0 {
		t.Error("another origin was asked")
	}
}

// 07 row 70: a url that came from outside leads to public addresses only, whatever its
// name resolves to; one of the operator's leads anywhere.
func TestPrivateTargets(t *testing.T) {
	s := newServer(t)
	port := s.URL[strings.LastIndexByte(s.URL, ':'):]
	for _, target := range []string{"http://127.0.0.1" + port, "http://localhost" + port, "ws://127.0.0.1" + port, "http://127.0.0.1" + port + "/sse"} {
		b := newBroker(t)
		b.start(Config{URL: target, External: true})
		if TransportOf(target) == StreamableHTTP {
			b.attach()
			b.send(initialize)
		}
		contains(t, target, fmt.Sprint(b.ended().Err), " is not a public address, and the url did not come from the broker's own configuration")
	}
	if len(s.log)+len(s.gets) != 0 {
		t.Error("the server was asked")
	}
}
