package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
)

const (
	initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + mcpRevision +
		`","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

// session is one Streamable HTTP session.
type session struct {
	client *http.Client
	url    string
	id     string
}

// openSessions opens n sessions as a client does, up to and including
// notifications/initialized.
func openSessions(ctx context.Context, client *http.Client, url string, n int) ([]*session, error) {
	sessions := make([]*session, n)
	err := parallel(n, func(i int) (err error) {
		sessions[i], err = openSession(ctx, client, url)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open sessions: %w", err)
	}
	return sessions, nil
}

func openSession(ctx context.Context, client *http.Client, url string) (*session, error) {
	s := &session{client: client, url: url}
	answer, err := s.post(ctx, []byte(initialize))
	if err != nil {
		return nil, err
	}
	if !bytes.Contains(answer, []byte(`"protocolVersion":"`+mcpRevision+`"`)) || s.id == "" {
		return nil, fmt.Errorf("initialize: session id %q, answer %.200s", s.id, answer)
	}
	_, err = s.post(ctx, []byte(initialized))
	return s, err
}

func closeSessions(ctx context.Context, sessions []*session) error {
	err := parallel(len(sessions), func(i int) error {
		_, err := sessions[i].do(ctx, http.MethodDelete, nil)
		return err
	})
	if err != nil {
		return fmt.Errorf("close sessions: %w", err)
	}
	return nil
}

// post sends one frame and returns the body of the answer.
func (s *session) post(ctx context.Context, frame []byte) ([]byte, error) {
	return s.do(ctx, http.MethodPost, frame)
}

func (s *session) do(ctx context.Context, method string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, s.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	if s.id != "" {
		request.Header.Set("Mcp-Session-Id", s.id)
		request.Header.Set("Mcp-Protocol-Version", mcpRevision)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if response.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%s: %s: %.200s", method, response.Status, answer)
	}
	if s.id == "" {
		s.id = response.Header.Get("Mcp-Session-Id")
	}
	return answer, nil
}
