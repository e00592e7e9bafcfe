package main_test

import (
	"encoding/json"
	"path/filepath"
	"testing"
)

// Rows 44 to 46, spec 01 5: the official TypeScript client over every transport
// it has, over mcp-remote for hosts that know only stdio, and over our bridge.
func TestTypeScriptEveryTransport(t *testing.T) {
	b := relayingBroker(t)
	remote := func(url, transport string) []string {
		return []string{"stdio", "node", filepath.Join("node_modules", "mcp-remote", "dist", "proxy.js"), url, "--allow-http", "--transport", transport}
	}
	for _, tt := range []struct {
		name, carrier string
		args          func(slot string) []string
	}{
		{"http", "POST", func(slot string) []string { return []string{"http", b.mcp(slot)} }},
		{"sse", "GET", func(slot string) []string { return []string{"sse", b.sse(slot)} }},
		{"bridge", "", func(slot string) []string {
			path, args := b.bridge(slot)
			return append([]string{"stdio", path}, args...)
		}},
		{"mcp-remote-http", "", func(slot string) []string { return remote(b.mcp(slot), "http-only") }},
		{"mcp-remote-sse", "", func(slot string) []string { return remote(b.sse(slot), "sse-only") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			slot := "ts-" + tt.name
			serveWorkshop(t, b.direct(slot))
			expectVisit(t, visitNode(t, tt.args(slot)...), fullVisit(tt.carrier))
		})
	}
}

// visitNode lets a script with the official TypeScript client do all there is to
// do in a workshop.
func visitNode(t *testing.T, args ...string) visit {
	t.Helper()
	p := startNode(t, "visitor.mjs", args...)
	line, err := json.Marshal(p.next())
	if err != nil {
		t.Fatal(err)
	}
	var reported struct {
		Event string
		Seen  visit
	}
	if err := json.Unmarshal(line, &reported); err != nil || reported.Event != "visit" {
		t.Fatalf("the script wrote %s", line)
	}
	if code := p.exit(patience); code != 0 {
		t.Errorf("the script exited with %d", code)
	}
	return reported.Seen
}
