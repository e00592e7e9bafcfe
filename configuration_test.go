package mcpbroker_test

import (
	"errors"
	"strings"
	"testing"
)

// A client of _broker hears what became of the last change of the configuration: that
// it was refused and why, or what of it waits for a restart.
func TestConfigurationIsReported(t *testing.T) {
	h := newHouse(t, "")
	c := h.client("_broker")
	says := func(when string, want ...string) {
		t.Helper()
		info, report := h.text(c, "broker_info", "{}"), h.text(c, "broker_diagnose", "{}")
		for _, part := range want {
			if out, unwanted := strings.CutPrefix(part, "not "); unwanted == strings.Contains(info+report, out) {
				t.Errorf("%s: want %s in %s %s", when, part, info, report)
			}
		}
	}
	const refused, waiting = `"id":"config-refused"`, `"id":"config-needs-restart"`
	says("at the start", `"file":"`+h.dir+`/broker.toml","lastReload":null,"needsRestart":[]`, "not "+refused, "not "+waiting)

	h.ReloadRefused(errors.New("broker.toml:3:1: unknown key \"prot\"\nbroker.toml:4:1: more"))
	says("after a refusal", `"applied":false,"error":"broker.toml:3:1: unknown key \"prot\"; broker.toml:4:1: more"}`, refused, "not "+waiting)

	if _, err := h.reload("maxSlots = 77\n"); err != nil {
		t.Fatal(err)
	}
	says("after a reload", `"applied":true,"error":null},"needsRestart":["maxSlots"]}`, "not "+refused, waiting)

	if _, err := h.reload(""); err != nil {
		t.Fatal(err)
	}
	says("after the change was taken back", `"needsRestart":[]}`, "not "+refused, "not "+waiting)
}

// What clients are told of a refused file holds no value of a setting. The numbers are
// longer than any that the answers have by themselves: ports, ages, names of folders.
func TestRefusalWithoutValues(t *testing.T) {
	const digits = "7770001117770001"
	h := newHouse(t, "")
	c := h.client("_broker")
	for _, tt := range []struct{ lines, want string }{
		{"headers = { Authorization = hunter2 }", `expected value but found \"***\" instead`},
		{"env = { TOKEN = " + digits + " }", `unknown key \"env\"`},
		{"headers = { Authorization = " + digits + " }", `must be`},
		{"retry = { attempts = 3.1." + digits + " }", "broker.toml:"},
		{"retry = { attempts = 0_" + digits + "_ }", "Invalid integer"},
		{`url = "hunter2"`, "duplicate key"},
	} {
		_, err := h.load("[[mcpServers]]\nname = 'x'\nurl = 'http://x/mcp'\n" + tt.lines + "\n")
		if err == nil {
			t.Errorf("%s is right", tt.lines)
			continue
		}
		h.ReloadRefused(err)
		for _, tool := range []string{"broker_info", "broker_diagnose"} {
			got := h.text(c, tool, "{}")
			if !strings.Contains(got, tt.want) || strings.Contains(got, "hunter") || strings.Contains(got, digits) {
				t.Errorf("%s: %s of %q: %s", tt.lines, tool, err, got)
			}
		}
	}
}
