package scenarios

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// httpLink is Streamable HTTP. It listens on a GET stream once the script wants
// to hear something; until then the broker keeps it.
type httpLink struct {
	url    string
	client *http.Client

	mu      sync.Mutex
	session string
	stop    context.CancelFunc // of the GET stream; nil while there is none
	stopped chan struct{}
}

func newHTTPLink(url string) *httpLink {
	return &httpLink{url: url, client: &http.Client{Transport: &http.Transport{}}}
}

func (l *httpLink) open(context.Context, context.Context, *client) error { return nil }

func (l *httpLink) send(ctx context.Context, c *client, id string, message []byte) error {
	resp, err := l.do(ctx, http.MethodPost, message)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := l.read(resp, c); err != nil {
		return err
	}
	if id != "" && c.waits(id) {
		return errors.New("the response ended before the answer")
	}
	return nil
}

// read gives c what a response holds: one message or an event stream.
func (l *httpLink) read(resp *http.Response, c *client) error {
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return readEvents(resp.Body, func(_ string, data []byte) { c.take(data) })
	}
	body, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return err
	case resp.StatusCode >= http.StatusBadRequest:
		return fmt.Errorf("HTTP %d: %s", resp.StatusCode, excerpt(string(body)))
	case len(body) > 0:
		c.take(body)
	}
	return nil
}

func (l *httpLink) do(ctx context.Context, method string, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, l.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	accept := "application/json, text/event-stream"
	if method == http.MethodGet {
		accept = "text/event-stream"
	}
	r.Header.Set("Accept", accept)
	r.Header.Set("Content-Type", "application/json")
	l.mu.Lock()
	session := l.session
	l.mu.Unlock()
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	resp, err := l.client.Do(r)
	if err != nil {
		return nil, err
	}
	if id := resp.Header.Get("Mcp-Session-Id"); session == "" && id != "" {
		l.mu.Lock()
		l.session = id
		l.mu.Unlock()
	}
	return resp, nil
}

func (l *httpLink) listen(ctx, life context.Context, c *client) error {
	l.mu.Lock()
	listening := l.stop != nil
	l.mu.Unlock()
	if listening {
		return nil
	}
	life, stop := context.WithCancel(life)
	defer context.AfterFunc(ctx, stop)() // while it is being opened
	resp, err := l.do(life, http.MethodGet, nil)
	if err != nil {
		stop()
		return fmt.Errorf("open the event stream: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		stop()
		_ = resp.Body.Close()
		return fmt.Errorf("open the event stream: %s", resp.Status)
	}
	stopped := make(chan struct{})
	l.mu.Lock()
	l.stop, l.stopped = stop, stopped
	l.mu.Unlock()
	go func() {
		defer close(stopped)
		defer resp.Body.Close()
		_ = readEvents(resp.Body, func(_ string, data []byte) { c.take(data) })
	}()
	return nil
}

func (l *httpLink) close(ctx context.Context) error {
	resp, err := l.do(ctx, http.MethodDelete, nil)
	if err == nil {
		_ = resp.Body.Close()
		if resp.StatusCode >= http.StatusBadRequest {
			err = fmt.Errorf("end the session: %s", resp.Status)
		}
	}
	l.cut()
	return err
}

func (l *httpLink) cut() {
	l.mu.Lock()
	stop, stopped := l.stop, l.stopped
	l.mu.Unlock()
	if stop != nil {
		stop()
		<-stopped
	}
	l.client.CloseIdleConnections()
}

// readEvents reads an event stream to its end.
func readEvents(body io.Reader, got func(name string, data []byte)) error {
	lines := bufio.NewReader(body)
	var name string
	var data []byte
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		field, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case field == "event":
			name = value
		case field == "data":
			data = append(data, value...)
		case field == "" && value == "" && data != nil:
			got(name, data)
			name, data = "", nil
		}
	}
}
