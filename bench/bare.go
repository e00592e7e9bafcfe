package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
)

// bareServer is the floor that the broker is compared to: Streamable HTTP by
// hand, one process, no relaying. It decodes every body with encoding/json, as
// a server without a broker in front of it has to.
type bareServer struct {
	sessions sync.Map // session id -> struct{}
}

// serveBare serves until ctx ends and announces its URL first.
func serveBare(ctx context.Context, stderr io.Writer) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("bare server: %w", err)
	}
	server := &http.Server{Handler: &bareServer{}}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	announce(stderr, "http://"+listener.Addr().String())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("bare server: %w", err)
	}
	return nil
}

func (s *bareServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPost:
		s.post(w, r)
	case http.MethodDelete:
		s.sessions.Delete(r.Header.Get("Mcp-Session-Id"))
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

func (s *bareServer) post(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var request struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if request.Method == "initialize" {
		id := rand.Text()
		s.sessions.Store(id, struct{}{})
		w.Header().Set("Mcp-Session-Id", id)
	} else if _, known := s.sessions.Load(r.Header.Get("Mcp-Session-Id")); !known {
		http.Error(w, "no such session", http.StatusNotFound)
		return
	}
	if request.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	answer := make([]byte, 0, len(body)+256)
	_, _ = w.Write(appendAnswer(answer, request.ID, request.Method, body))
}
