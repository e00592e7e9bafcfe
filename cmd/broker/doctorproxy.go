package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"time"
)

// firstByteTimeout is how long the first bytes of an event stream may take. A broker
// sends them with the head.
const firstByteTimeout = 5 * time.Second

// checkProxy goes the way to a broker that clients and providers go.
func (p *program) checkProxy(ctx context.Context, found *findings, at address) {
	const check = "way"
	opening, cancel := context.WithTimeoutCause(ctx, defaultTimeout, &lateError{defaultTimeout})
	defer cancel()
	c, err := p.connect(opening, at, brokerSlot)
	if err != nil {
		found.fail(check, err.Error(), "")
		return
	}
	defer c.close()
	found.ok(check, "a broker answers at "+c.endpoint)
	c.checkStream(ctx, found, firstByteTimeout)
	c.checkUpgrade(ctx, found)
}

// checkStream tells whether the first bytes of the event stream come at once.
func (c *client) checkStream(ctx context.Context, found *findings, limit time.Duration) {
	const check = "event stream"
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	began := time.Now()
	resp, err := c.do(ctx, http.MethodGet, nil)
	if err == nil {
		defer func() { _ = resp.Body.Close() }()
		if resp.StatusCode != http.StatusOK {
			found.fail(check, fmt.Sprintf("GET is answered HTTP %s", resp.Status), "let the proxy pass GET with the headers Accept and Mcp-Session-Id")
			return
		}
		_, err = io.ReadFull(resp.Body, make([]byte, 1))
	}
	switch {
	case err == nil:
		found.ok(check, fmt.Sprintf("the first bytes came after %d ms", time.Since(began).Milliseconds()))
	case ctx.Err() != nil:
		found.fail(check, fmt.Sprintf("nothing came within %s, though a broker sends at once: a proxy collects the answer", limit),
			"turn buffering and compression of text/event-stream off; in nginx: proxy_buffering off; gzip off;")
	default:
		found.fail(check, fmt.Sprintf("the stream broke: %v", err), "let the proxy keep a silent answer open for a minute or more")
	}
}

// checkUpgrade tells whether WebSockets pass, which providers connect with.
func (c *client) checkUpgrade(ctx context.Context, found *findings) {
	const check = "WebSocket"
	const fix = "let the proxy speak HTTP/1.1 to the broker and pass Upgrade and Connection on"
	ctx, cancel := context.WithTimeout(ctx, firstByteTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.at.base+"/"+brokerSlot, nil)
	if err != nil {
		found.fail(check, err.Error(), "")
		return
	}
	key := make([]byte, 16)
	_, _ = rand.Read(key) // never fails
	for name, value := range map[string]string{
		"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
		"Sec-WebSocket-Key": base64.StdEncoding.EncodeToString(key),
	} {
		r.Header.Set(name, value)
	}
	t := c.http.Transport.(*http.Transport).Clone()
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true) // HTTP/2 has no upgrades
	defer t.CloseIdleConnections()
	resp, err := t.RoundTrip(r)
	if err != nil {
		found.fail(check, fmt.Sprintf("the upgrade failed: %v", err), fix)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusSwitchingProtocols {
		found.fail(check, fmt.Sprintf("the upgrade is answered HTTP %s", resp.Status), fix)
		return
	}
	found.ok(check, "the upgrade passes")
}
