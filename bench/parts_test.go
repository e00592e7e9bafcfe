package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAnswerFrame(t *testing.T) {
	tests := []struct{ frame, want string }{
		{`{"jsonrpc":"2.0","id":"brk-1","method":"tools/call","params":{"name":"echo","arguments":{"message":"hi"}}}`,
			`{"jsonrpc":"2.0","id":"brk-1","result":{"content":[{"type":"text","text":"hi"}]}}`},
		{`{"id":7,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"Method not found"}}`},
		{`{"method":"notifications/initialized"}`, ""},
		{`{"id":7}`, ""},
		{`{"id":`, ""},
		{`{"id":1,"method":"`, ""},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, string(answerFrame(nil, []byte(tt.frame)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.frame, diff)
		}
	}
}

// An answer counts only for the call it belongs to.
func TestAnswers(t *testing.T) {
	tests := []struct {
		body string
		want bool
	}{
		{`{"jsonrpc":"2.0","id":12,"result":{"content":[{"type":"text","text":"s0-12-xx"}]}}`, true},
		{"event: message\ndata: " + `{"jsonrpc":"2.0","id":12,"result":{"content":[{"type":"text","text":"s0-12-xx"}]}}` + "\n\n", true},
		{`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"s0-12-xx"}]}}`, false},
		{`{"jsonrpc":"2.0","id":12,"result":{"content":[{"type":"text","text":"s1-12-xx"}]}}`, false},
		{`{"jsonrpc":"2.0","id":12,"result":{"content":[{"type":"text","text":"s0-12-xxx"}]}}`, false},
		{`{"jsonrpc":"2.0","id":12,"error":{"code":-32000,"message":"s0-12-xx"}}`, false},
		{"", false},
	}
	for _, tt := range tests {
		if got := answers([]byte(tt.body), 12, []byte("s0-12-xx")); got != tt.want {
			t.Errorf("%s: %t", tt.body, got)
		}
	}
}

func TestBareServer(t *testing.T) {
	server := httptest.NewServer(&bareServer{})
	defer server.Close()
	s, err := openSession(t.Context(), server.Client(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := s.post(t.Context(), echoCall(3, []byte("hi")))
	if err != nil || !answers(answer, 3, []byte("hi")) {
		t.Errorf("answer %s, error %v", answer, err)
	}
	if err := closeSessions(t.Context(), []*session{s}); err != nil {
		t.Error(err)
	}
	requests := []struct {
		method, body string
		status       int
	}{
		{http.MethodPost, string(echoCall(4, []byte("hi"))), http.StatusNotFound},
		{http.MethodPost, "{", http.StatusBadRequest},
		{http.MethodGet, "", http.StatusMethodNotAllowed},
	}
	for _, r := range requests {
		w := httptest.NewRecorder()
		request := httptest.NewRequest(r.method, "/mcp", strings.NewReader(r.body))
		request.Header.Set("Mcp-Session-Id", s.id)
		(&bareServer{}).ServeHTTP(w, request)
		if w.Code != r.status {
			t.Errorf("%s %s: status %d", r.method, r.body, w.Code)
		}
	}
}

func TestPercentile(t *testing.T) {
	var sorted []time.Duration
	for i := range 200 {
		sorted = append(sorted, time.Duration(i+1))
	}
	got := []time.Duration{percentile(sorted, 0.5), percentile(sorted, 0.99), percentile(sorted, 1), percentile(sorted[:1], 0.5), percentile(nil, 0.5)}
	if diff := cmp.Diff([]time.Duration{100, 198, 200, 1, 0}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMedian(t *testing.T) {
	if odd, even := median([]float64{3, 1, 2}), median([]float64{4, 1, 3, 2}); odd != 2 || even != 2.5 {
		t.Errorf("%v, %v", odd, even)
	}
}

func TestProc(t *testing.T) {
	cpu, err := parseCPUTime([]byte("12 (a) b) S 1 12 12 0 -1 4194560 1 2 3 4 150 25 0 0 20 0 5 0"))
	if err != nil || cpu != 1750*time.Millisecond {
		t.Errorf("CPU time %s, error %v", cpu, err)
	}
	if _, err := parseCPUTime([]byte("12 (a) S 1")); err == nil {
		t.Error("a short line passed")
	}
	size, err := parseResident([]byte("55da-7ffd ---p 0 0 0   [rollup]\nRss:                1692 kB\nPss:                 305 kB\n"))
	if err != nil || size != 1692<<10 {
		t.Errorf("resident memory %d, error %v", size, err)
	}
	if _, err := parseResident([]byte("Pss: 305 kB\n")); err == nil {
		t.Error("a missing line passed")
	}
}

// The announcement is found wherever the writes are cut, and only the last lines are kept.
func TestChildLog(t *testing.T) {
	const text = "plain\n{\"msg\":\"x\"}\n{\"url\":\"http://localhost:1\"}\n{\"url\":\"http://localhost:2\"}\n"
	for size := 1; size <= len(text); size++ {
		l := &childLog{url: make(chan string, 1)}
		_, err := io.CopyBuffer(struct{ io.Writer }{l}, struct{ io.Reader }{strings.NewReader(text)}, make([]byte, size))
		if err != nil {
			t.Fatal(err)
		}
		if got := <-l.url; got != "http://localhost:1" || l.last() != text {
			t.Fatalf("writes of %d bytes: %s, %q", size, got, l.last())
		}
	}
	l := &childLog{url: make(chan string, 1)}
	for range 3 {
		_, _ = l.Write([]byte(strings.Repeat("a", keptLog-1) + "b"))
	}
	if got := l.last(); got != strings.Repeat("a", keptLog-1)+"b" {
		t.Errorf("kept %d bytes", len(got))
	}
}

func TestLoopback(t *testing.T) {
	if got, err := loopback("http://localhost:4711"); err != nil || got != "http://127.0.0.1:4711" {
		t.Errorf("%s, %v", got, err)
	}
}
