package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

const (
	tokenTimeout  = 15 * time.Second
	tokenLeeway   = 30 * time.Second // a token is renewed this long before it expires
	maxTokenBytes = 64 << 10
)

// tokens fetches and keeps the access token of one connection (RFC 6749 4.4). A nil
// one has none.
type tokens struct {
	cfg      ClientCredentials
	resource string // of RFC 8707: what the token is for
	http     *http.Client

	fetching sync.Mutex // held while a token is fetched: of all who need one, one asks

	mu     sync.Mutex
	token  string
	until  time.Time // zero is no known end
	inBody bool      // the server takes the credentials in the body only
}

// errCredentials: the authorization server does not accept the client. Waiting does
// not help.
var errCredentials = errors.New("the authorization server refused the client credentials")

func (t *tokens) get(ctx context.Context) (string, error) {
	if token := t.present(); token != "" {
		return token, nil
	}
	t.fetching.Lock()
	defer t.fetching.Unlock()
	if token := t.present(); token != "" {
		return token, nil
	}
	ctx, cancel := untraced(ctx)
	defer cancel()
	return t.fetch(ctx)
}

// untraced is a context that ends with ctx and has none of its values: a trace of the
// request that needs the token must not take the token's own exchange for it.
func untraced(ctx context.Context) (context.Context, context.CancelFunc) {
	bare, cancel := context.WithCancelCause(context.Background())
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	return bare, func() { stop(); cancel(nil) }
}

func (t *tokens) present() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.until.IsZero() && !time.Now().Before(t.until) {
		return ""
	}
	return t.token
}

// known lists the secrets in hand.
func (t *tokens) known() []string {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return []string{t.token}
}

// drop forgets a token the server has refused, unless there is a newer one.
func (t *tokens) drop(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token == token {
		t.token = ""
	}
}

func (t *tokens) fetch(ctx context.Context) (string, error) {
	t.mu.Lock()
	inBody := t.inBody
	t.mu.Unlock()
	grant, err := t.ask(ctx, inBody)
	if errors.Is(err, errCredentials) && !inBody { // some take them in the body only
		if again, e := t.ask(ctx, true); e == nil {
			grant, err, inBody = again, nil, true
		}
	}
	if err != nil {
		return "", fmt.Errorf("fetch an access token: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.token, t.until, t.inBody = grant.AccessToken, grant.end(time.Now()), inBody
	return t.token, nil
}

// grant is the answer of a token endpoint.
type grant struct {
	AccessToken string      `json:"access_token"`
	TokenType   string      `json:"token_type"`
	ExpiresIn   json.Number `json:"expires_in"`
	Error       string      `json:"error"`
	Description string      `json:"error_description"`
}

// end is when the token has to be renewed. One that lives shortly is used for half of
// its life.
func (g *grant) end(now time.Time) time.Time {
	seconds, err := g.ExpiresIn.Float64()
	if err != nil || seconds <= 0 {
		return time.Time{}
	}
	life := time.Duration(min(seconds, 1e9) * float64(time.Second))
	return now.Add(max(life-tokenLeeway, life/2))
}

func (t *tokens) ask(ctx context.Context, inBody bool) (*grant, error) {
	form := url.Values{"grant_type": {"client_credentials"}, "resource": {t.resource}}
	if len(t.cfg.Scopes) > 0 {
		form.Set("scope", strings.Join(t.cfg.Scopes, " "))
	}
	if inBody {
		form.Set("client_id", t.cfg.ClientID)
		form.Set("client_secret", t.cfg.ClientSecret)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.cfg.TokenURL, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, withoutURL(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json")
	if !inBody {
		r.SetBasicAuth(url.QueryEscape(t.cfg.ClientID), url.QueryEscape(t.cfg.ClientSecret))
	}
	resp, err := t.http.Do(r)
	if err != nil {
		return nil, withoutURL(err)
	}
	defer discard(resp)
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxTokenBytes))
	if err != nil {
		return nil, fmt.Errorf("read the token: %w", err)
	}
	return parseGrant(resp, body)
}

func parseGrant(resp *http.Response, body []byte) (*grant, error) {
	var g grant
	malformed := json.Unmarshal(body, &g) != nil
	switch {
	case resp.StatusCode == http.StatusUnauthorized, resp.StatusCode == http.StatusBadRequest && g.Error != "":
		return nil, fmt.Errorf("%w (HTTP %s): %s", errCredentials, resp.Status, strings.Trim(g.Error+": "+g.Description, ": "))
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the authorization server answered HTTP %s", resp.Status)
	case malformed:
		return nil, errors.New("the authorization server's answer is not the JSON of a token")
	case g.AccessToken == "":
		return nil, errors.New("the authorization server's answer holds no access_token")
	case g.TokenType != "" && !strings.EqualFold(g.TokenType, "bearer"):
		return nil, fmt.Errorf("the authorization server issued a token of type %q, not bearer", g.TokenType)
	}
	return &g, nil
}
