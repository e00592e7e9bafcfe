package scenarios

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// sseLink is the legacy pair: a stream for all that comes, posts beside it.
type sseLink struct {
	url    string
	client *http.Client

	post string // from the first event
	stop context.CancelFunc
	done chan struct{}
}

func newSSELink(url string) *sseLink {
	return &sseLink{url: url, client: &http.Client{Transport: &http.Transport{}}}
}

func (l *sseLink) open(ctx, life context.Context, c *client) error {
	life, stop := context.WithCancel(life)
	l.stop = stop
	r, err := http.NewRequestWithContext(life, http.MethodGet, l.url, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "text/event-stream")
	defer context.AfterFunc(ctx, stop)() // while it is being opened
	resp, err := l.client.Do(r)
	if err != nil {
		return fmt.Errorf("open the event stream: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return fmt.Errorf("open the event stream: %s", resp.Status)
	}
	endpoint := make(chan string, 1)
	l.done = make(chan struct{})
	go func() {
		defer close(l.done)
		defer c.ended()
		defer resp.Body.Close()
		_ = readEvents(resp.Body, func(name string, data []byte) {
			if name != "endpoint" {
				c.take(data)
				return
			}
			select {
			case endpoint <- string(data):
			default:
			}
		})
	}()
	select {
	case target := <-endpoint:
		return l.postTo(target)
	case <-l.done:
		return fmt.Errorf("the event stream named no endpoint")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *sseLink) postTo(target string) error {
	base, err := url.Parse(l.url)
	if err != nil {
		return err
	}
	endpoint, err := base.Parse(target)
	if err != nil {
		return fmt.Errorf("the endpoint of the event stream: %w", err)
	}
	l.post = endpoint.String()
	return nil
}

func (l *sseLink) send(ctx context.Context, _ *client, _ string, message []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.post, bytes.NewReader(message))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := l.client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusBadRequest {
		body, _ := io.ReadAll(resp.Body)
		return fmt.Errorf("HTTP %d: %s", resp.StatusCode, excerpt(string(body)))
	}
	return nil
}

func (l *sseLink) listen(context.Context, context.Context, *client) error { return nil }

func (l *sseLink) close(context.Context) error {
	l.cut()
	return nil
}

func (l *sseLink) cut() {
	if l.stop != nil {
		l.stop()
	}
	if l.done != nil {
		<-l.done
	}
	l.client.CloseIdleConnections()
}
