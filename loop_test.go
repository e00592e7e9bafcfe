package mcpbroker_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mcpbroker/actors/msg"
)

// dialled is an entry of mcpServers.
func dialled(name, url string) string {
	return fmt.Sprintf("\n[[mcpServers]]\nname = %q\nurl = %q\n", name, url)
}

// Two brokers whose _all contain each other would list each other's tools under
// longer and longer names. The one that finds itself in the other's lists leaves it
// out and says so.
func TestAggregatesOfEachOther(t *testing.T) {
	first := newHouse(t, "")
	second := newHouse(t, dialled("one", first.MCPURL("_all")))
	second.Log.Wait(t, `provider "one" joined "_all"`)
	if _, err := first.reload(dialled("two", second.MCPURL("_all"))); err != nil {
		t.Fatal(err)
	}
	first.Log.Wait(t, `provider "two" was not added to "_all"`, "it is an _all that contains this broker: a loop")

	report := first.text(first.client("_broker"), "broker_diagnose", `{"slot":"two"}`)
	for _, part := range []string{`"id":"aggregate-loop"`, "it is an _all that contains this broker"} {
		if !strings.Contains(report, part) {
			t.Errorf("broker_diagnose does not say %s: %s", part, report)
		}
	}

	// What comes to the one reaches the other, once and under one name.
	first.Dedicated(t, "late").Send(`{"jsonrpc":"2.0","method":"notifications/register","params":{"aggregate":true}}`)
	if tools := first.allTools(); slices.ContainsFunc(tools, func(name string) bool { return strings.HasPrefix(name, "two-") }) {
		t.Errorf("the first broker lists %q", tools)
	}
	tools := second.allTools()
	if !slices.Contains(tools, "one-_broker-broker_info") || slices.ContainsFunc(tools, func(name string) bool { return strings.HasPrefix(name, "one-two-") }) {
		t.Errorf("the second broker lists %q", tools)
	}
}

// A slot is not relayed to the broker it is a slot of, under any name of that.
func TestUpstreamIsThisBroker(t *testing.T) {
	h := newHouse(t, "")
	port := h.Addr().String()[strings.LastIndex(h.Addr().String(), ":"):]
	urls := map[string]string{
		"all":       h.MCPURL("_all"),
		"broker":    h.MCPURL("_broker"),
		"itself":    h.MCPURL("itself"),
		"sse":       h.SSEURL("other"),
		"socket":    h.ClientURL("other"),
		"localhost": "http://localhost" + port + "/other/mcp",
		"mapped":    "http://[::ffff:127.0.0.1]" + port + "/other/mcp",
		"any":       "http://0.0.0.0" + port + "/other/mcp",
	}
	text := ""
	for name, url := range urls {
		text += dialled(name, url)
	}
	if _, err := h.reload(text); err != nil {
		t.Fatal(err)
	}
	for name := range urls {
		i := h.verdict(name, msg.Failed)
		if want := "its url is this broker's own address, "; !strings.HasPrefix(i.Error, want) {
			t.Errorf("%s: error %q, want it to begin with %q", name, i.Error, want)
		}
	}
}
