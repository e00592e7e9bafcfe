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

	"mcpbroker/provider"
)

// unread gives a process a pipe for standard error that is read up to the banner's last
// line, and further once resume is called. rest waits for the last byte, behind the end
// of the process.
func unread(p *process) (resume, rest func()) {
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
	return func() { close(read) }, func() { _ = w.Close(); <-through }
}

// refuseUpgrades has the broker log refusals, numbered from one number up to another, of
// some 500 bytes each.
func refuseUpgrades(t *testing.T, b *broker, from, to int) {
	t.Helper()
	client := &http.Client{Timeout: patience}
	defer client.CloseIdleConnections()
	padding := strings.Repeat("x", 300)
	for i := from; i < to; i++ {
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
	resume, rest := unread(p)
	b := runBroker(p)
	b.await(b.stderr, `Ctrl\+C stops the broker\n`)
	slow := startSlow(t, b.direct("slow"))
	session := newSession(t, b.mcp("slow"))
	refuseUpgrades(t, b, 0, refusals)

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
	b.await(b.stderr, droppedLines)
	refuseUpgrades(t, b, refusals, refusals+1)
	b.await(b.stderr, fmt.Sprintf(`REFUSED path="/provider\?n=%d&`, refusals)) // behind all that waited
	b.signal(syscall.SIGTERM)
	b.stops()
	rest()
	log := b.stderr.String()
	if !strings.Contains(log, "[mcp-broker] SIGTERM received, stopping\n") {
		t.Errorf("standard error ends in %q", log[max(0, len(log)-400):])
	}
	expectRefusals(t, log, refusals+1)
}

const droppedLines = `(?m)^\[mcp-broker\] (\d+) log lines were dropped: standard error did not take them in time$`

// expectRefusals finds each line of refuseUpgrades whole, in order, or counted as dropped.
func expectRefusals(t *testing.T, log string, n int) {
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
	missing := 0
	for _, m := range regexp.MustCompile(droppedLines).FindAllStringSubmatch(log, -1) {
		number, _ := strconv.Atoi(m[1])
		missing += number
	}
	if lost := n - seen; lost <= 0 || lost > missing {
		t.Errorf("%d of %d lines are missing, and %d are said to be dropped", lost, n, missing)
	}
}
