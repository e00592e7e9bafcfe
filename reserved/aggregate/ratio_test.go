package aggregate_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpbroker/brokertest"
)

// BenchmarkThroughAll measures tools/call through _all against the direct call,
// turn by turn in one run, and reports the median ratio of five.
func BenchmarkThroughAll(b *testing.B) {
	broker := start(b, nil)
	p := member(b, broker, "s")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for request := p.Receive(); !strings.Contains(request, `"stop"`); request = p.Receive() {
			if strings.Contains(request, `"id"`) {
				brokertest.Respond(p, request, `{"content":[{"type":"text","text":"ok"}]}`)
			}
		}
	}()
	direct := newPoster(b, broker.MCPURL("s"), "run")
	all := newPoster(b, broker.MCPURL("_all"), "s-run")
	const calls = 500
	var ratios []float64
	for b.Loop() {
		ratios = ratios[:0]
		for range 5 {
			a, d := all.run(calls), direct.run(calls)
			ratios = append(ratios, float64(a)/float64(d))
		}
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "ratio")
	direct.post(`{"jsonrpc":"2.0","method":"stop"}`)
	<-done
}

// poster calls one tool over and over on one connection.
type poster struct {
	t       testing.TB
	url     string
	session string
	call    string
	client  *http.Client
}

func newPoster(t testing.TB, url, tool string) *poster {
	p := &poster{t: t, url: url, client: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(p.client.CloseIdleConnections)
	p.session = p.post(initialize).Get("Mcp-Session-Id")
	p.call = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"` + tool + `","arguments":{"x":1}}}`
	p.run(100)
	return p
}

func (p *poster) post(body string) http.Header {
	r, _ := http.NewRequest(http.MethodPost, p.url, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if p.session != "" {
		r.Header.Set("Mcp-Session-Id", p.session)
	}
	resp, err := p.client.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	if strings.Contains(string(text), `"error"`) {
		p.t.Fatalf("%s: %s", body, text)
	}
	return resp.Header
}

func (p *poster) run(n int) time.Duration {
	begin := time.Now()
	for i := range n {
		p.post(fmt.Sprintf(p.call, i))
	}
	return time.Since(begin)
}
