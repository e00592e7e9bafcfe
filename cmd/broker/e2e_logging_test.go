package main_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcpbroker/provider"
)

// unread gives a process a pipe for standard error that is read up to the banner's last
// line, and further once resume is called.
func unread(p *process) (resume func()) {
	p.t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		p.t.Fatal(err)
	}
	p.cmd.Stderr = w
	read, through := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(through)
		piece := make([]byte, 1)
		for !strings.HasSuffix(p.stderr.String(), "Ctrl+C stops the broker\n") {
			if _, err := io.ReadFull(r, piece); err != nil {
				return
			}
			_, _ = p.stderr.Write(piece)
		}
		<-read
		_, _ = io.Copy(p.stderr, r)
	}()
	p.t.Cleanup(func() { // behind the end of the process
		_ = w.Close()
		_ = r.Close()
		<-through
	})
	return func() { close(read) }
}

// refuseUpgrades has the broker log n refusals, of some 500 bytes each.
func refuseUpgrades(t *testing.T, b *broker, n int) {
	t.Helper()
	client := &http.Client{Timeout: patience}
	defer client.CloseIdleConnections()
	padding := strings.Repeat("x", 300)
	for i := range n {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%s/provider?n=%d&%s", b.port, i, padding), nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", "websocket")
		resp, err := client.Do(r)
		if err != nil {
			t.Fatalf("refusal %d: %v", i, err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest {
			t.Fatalf("refusal %d: HTTP %s", i, resp.Status)
		}
	}
}

// A standard error nobody reads, such as a terminal that is paused, holds up no call and
// no actor. Once it is read again the lines come in their order and whole, with a word
// about those that were dropped, and the last ones are there at the end.
func TestStandardErrorIsNotRead(t *testing.T) {
	const refusals = 2000
	p := newBroker(t, "--port", "0")
	resume := unread(p)
	b := runBroker(p)
	b.await(b.stderr, `Ctrl\+C stops the broker\n`)
	slow := startSlow(t, b.direct("slow"))
	session := newSession(t, b.mcp("slow"))
	refuseUpgrades(t, b, refusals)

	// the slot's actor logs that a second provider is refused
	second := provider.NewServer("second", "1.0.0").Serve
	err := second(t.Context(), func(ev provider.Events) provider.Transport { return provider.NewDirect(b.direct("slow"), ev) })
	if err == nil || !strings.Contains(err.Error(), "1008") {
		t.Errorf("the second provider ended with %v", err)
	}
	answer := session.Start(slowCall)
	within(t, slow.begun, "the call did not reach the provider")
	close(slow.finish)
	expectHTTP(t, within(t, answer, "no answer"), http.StatusOK,
		`{"jsonrpc":"2.0","id":"s","result":{"content":[{"type":"text","text":"done"}]}}`)

	resume()
	dropped := b.await(b.stderr, `(?m)^\[mcp-broker\] (\d+) log lines were dropped: standard error did not take them in time$`)
	b.signal(syscall.SIGTERM)
	if code := b.exit(10 * time.Second); code != 0 {
		t.Errorf("exit code %d", code)
	}
	b.await(b.stderr, `\[mcp-broker\] SIGTERM received, stopping\n`)
	expectRefusals(t, b.stderr.String(), refusals, dropped[1])
}

// expectRefusals finds each line of refuseUpgrades whole, in order, or counted as dropped.
func expectRefusals(t *testing.T, log string, n int, dropped string) {
	t.Helper()
	line := regexp.MustCompile(`^\[broker\] ws upgrade REFUSED path="/provider\?n=(\d+)&x{300}": .*\n$`)
	seen, last := 0, -1
	for text := range strings.Lines(log) {
		if !strings.Contains(text, "REFUSED") {
			continue
		}
		m := line.FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("torn line %q", text)
		}
		number, _ := strconv.Atoi(m[1])
		if number <= last {
			t.Fatalf("line %d comes behind line %d", number, last)
		}
		seen, last = seen+1, number
	}
	missing, _ := strconv.Atoi(dropped)
	if lost := n - seen; lost <= 0 || lost > missing {
		t.Errorf("%d of %d lines are missing, and %d are said to be dropped", lost, n, missing)
	}
}
