package guide_test

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcpbroker"
	"mcpbroker/actors/wire"
	"mcpbroker/reserved/guide"
)

// snippet is a piece of code in a page: a line of a fenced block, or a span.
type snippet struct{ page, lang, text string } // lang is "span" for a span

var span = regexp.MustCompile("`([^`]+)`")

// snippets returns the code of all pages; whole tells blocks apart from lines.
func snippets(t *testing.T) (lines, blocks []snippet) {
	t.Helper()
	for _, topic := range guide.Topics() {
		page, ok := guide.Page(topic.Topic, defaults())
		if !ok {
			t.Fatalf("there is no page %q", topic.Topic)
		}
		for i, part := range strings.Split(page, "```") {
			if i%2 == 1 {
				lang, body, _ := strings.Cut(part, "\n")
				blocks = append(blocks, snippet{topic.Topic, lang, body})
				for line := range strings.Lines(body) {
					lines = append(lines, snippet{topic.Topic, lang, strings.TrimSpace(line)})
				}
				continue
			}
			for _, m := range span.FindAllStringSubmatch(part, -1) {
				lines = append(lines, snippet{topic.Topic, "span", m[1]})
			}
		}
	}
	return lines, blocks
}

func lines(t *testing.T) []snippet {
	t.Helper()
	l, _ := snippets(t)
	return l
}

// Every URL of this broker in a page has a form that leads somewhere.
func TestURLsAreRight(t *testing.T) {
	forms := []*regexp.Regexp{
		regexp.MustCompile(`^ws://localhost:3000/provider/[^/]+$`),
		regexp.MustCompile(`^ws://localhost:3000/providers$`),
		regexp.MustCompile(`^ws://localhost:3000/[^/]+$`),
		regexp.MustCompile(`^http://localhost:3000/[^/]+/(mcp|sse|messages)$`),
		regexp.MustCompile(`^http://localhost:3000$`),
	}
	address := regexp.MustCompile(`(?:wss?|https?)://localhost[^\s"',;)]*`)
	seen := 0
	for _, s := range lines(t) {
		for _, u := range address.FindAllString(s.text, -1) {
			seen++
			if !slices.ContainsFunc(forms, func(f *regexp.Regexp) bool { return f.MatchString(u) }) {
				t.Errorf("%s: %s", s.page, u)
			}
		}
	}
	if seen < 20 {
		t.Errorf("only %d URLs were found", seen)
	}
}

// Every JSON block is valid, as a whole or line by line, and its messages are
// JSON-RPC.
func TestJSONIsValid(t *testing.T) {
	_, blocks := snippets(t)
	for _, b := range blocks {
		if b.lang != "json" {
			continue
		}
		for line := range strings.Lines(b.text) {
			if line = strings.TrimSpace(line); !json.Valid([]byte(line)) {
				t.Errorf("%s: not JSON: %s", b.page, line)
				continue
			}
			var envelope struct{ Payload json.RawMessage }
			if err := json.Unmarshal([]byte(line), &envelope); err != nil {
				t.Errorf("%s: %s: %v", b.page, line, err)
			}
			frame := []byte(line)
			if envelope.Payload != nil {
				frame = envelope.Payload
			}
			if f, err := wire.Scan(frame); strings.Contains(line, "jsonrpc") && (err != nil || !f.JSONRPC) {
				t.Errorf("%s: no message: %s: %v", b.page, line, err)
			}
		}
	}
}

// Every text of the broker that a page quotes is what the broker says.
func TestQuotedTexts(t *testing.T) {
	texts := []string{
		wire.UpstreamDown("files", "it exited with code 1", "Attempt 1 failed, the next one is at 2026-01-02 09:27:29 (UTC)").Message,
		wire.ManagedSlot("files").Message, wire.ManagedSlot("pump-1").Message,
		wire.NotConnected("pump-1").Message, wire.Disconnected("pump-1").Message, wire.NoAnswer("pump-1", time.Minute).Message,
		wire.NoLongerConnected("pump-1").Message, wire.LeftOut("pump-1", "x").Message, wire.UnknownAggregated("tool", "x").Message,
		wire.SlotBusy("pump-1", "maxPendingPerSlot", 1024).Message, wire.SessionBusy(64).Message,
		wire.SubscriptionLimit("maxSubscriptionsPerClient", 64).Message, wire.DuplicateID([]byte(`"a"`)).Message,
		wire.NoDiscovery("2025-11-25").Message, wire.TooManySlots("pump-1", 10000).Message,
		wire.ReservedSlot(wire.SlotBroker).Message, wire.AlreadyConnected("pump-1", "", "").Message, wire.HeldReason("pump-1"),
		wire.EnvelopeReason("/provider/<slot>", "/providers"), wire.PlainReason("/providers", "/provider"),
		wire.Unparseable(errors.New("x")).Message,
		(&mcpbroker.ListenError{Host: "127.0.0.1", Port: 3000, Scheme: "http", MCPPath: "/mcp", Err: syscall.EADDRINUSE}).Error(),
	}
	// What others say, and code that looks like a sentence.
	others := []string{"Connection closed", "DirectTransport", "MultiplexTransport", "GET /healthz", "GET /readyz", "GET /llms.txt", "WebSocket"}
	sentence := regexp.MustCompile(`^[A-Z][a-z]+ `)
	seen := 0
	for _, s := range lines(t) {
		if s.lang != "span" || !sentence.MatchString(s.text) || slices.Contains(others, s.text) {
			continue
		}
		seen++
		if !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, s.text) }) {
			t.Errorf("%s quotes %q, which the broker does not say", s.page, s.text)
		}
	}
	if seen < 15 {
		t.Errorf("only %d quotes were found", seen)
	}
}
