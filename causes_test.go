package mcpbroker_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"mcpbroker/actors/msg"
)

// What is wrong with an upstream is told by its driver, in words; broker_diagnose knows
// what to do about each. One that was never run has no output, and a server that answers
// can be reached.
func TestFixFitsTheCause(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("/404", http.NotFoundHandler())
	mux.HandleFunc("/405", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMethodNotAllowed) })
	mux.HandleFunc("/503", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	mux.Handle("/301", http.RedirectHandler("/elsewhere", http.StatusMovedPermanently))
	mux.HandleFunc("/page", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<html>Log in</html>"))
	})
	plain := httptest.NewServer(mux)
	t.Cleanup(plain.Close)
	t.Setenv("BROKEN_IN_TWO", "a\nb")

	at := func(scheme, path string) string { return scheme + strings.TrimPrefix(plain.URL, "http") + path }
	const other, reach = "The server was reached and answered, but not as an MCP server does.", "can be reached from this machine"
	tests := map[string]struct{ entry, want, never string }{
		"no-command": {"\n[[stdioUpstreams]]\nname = 'no-command'\ncommand = 'no-such-command-here'\n", "Nothing was run", "broker logs"},
		"no-file":    {"\n[[stdioUpstreams]]\nname = 'no-file'\ncommand = './no-such-file'\n", "Nothing was run", "broker logs"},
		"no-dir":     {"\n[[stdioUpstreams]]\nname = 'no-dir'\ncommand = 'sh'\ncwd = 'missing'\n", "set cwd", "broker logs"},
		"exits":      {"\n[[stdioUpstreams]]\nname = 'exits'\ncommand = 'sh'\nargs = ['-c', 'exit 3']\n", "broker logs", "Nothing was run"},
		"no-bundle":  {"\n[[mcpbBundles]]\nname = 'no-bundle'\npath = 'x.mcpb'\npublicKey = 'x.pem'\n", "set path", "verify"},
		"404":        {dialled("404", at("http", "/404")), other, reach},
		"sse":        {dialled("sse", at("http", "/404")) + "transport = 'sse'\n", other, reach},
		"page":       {dialled("page", at("http", "/page")), other, reach},
		"socket":     {dialled("socket", at("ws", "/405")), other, reach},
		"moved":      {dialled("moved", at("http", "/301")), "to be found elsewhere", reach},
		"busy":       {dialled("busy", at("http", "/503")), "cannot serve at present", reach},
		"tls":        {dialled("tls", at("https", "/404")), "begin with http:// (or ws://) instead of https://", reach},
		"header":     {dialled("header", at("http", "/404")) + "headers = { X-Token = '${BROKEN_IN_TWO}' }\n", "Correct headers", reach},
		"nobody":     {dialled("nobody", "http://127.0.0.1:1/mcp"), reach, other},
		"itself":     {"", "", ""}, // its address is not known yet
	}
	text := ""
	for _, tt := range tests {
		text += tt.entry
	}
	h := newHouse(t, "")
	tests["itself"] = struct{ entry, want, never string }{dialled("itself", h.MCPURL("_broker")), "this broker serves its slots already", reach}
	if _, err := h.reload(text + tests["itself"].entry); err != nil {
		t.Fatal(err)
	}
	c := h.client("_broker")
	for name, tt := range tests {
		i := h.verdict(name, msg.Failed)
		var report struct {
			Problems []struct{ ID, Symptom, Fix string }
		}
		answer := h.text(c, "broker_diagnose", `{"slot":"`+name+`"}`)
		if err := json.Unmarshal([]byte(answer), &report); err != nil {
			t.Fatal(err)
		}
		if len(report.Problems) != 1 || report.Problems[0].ID != "upstream-failed" {
			t.Errorf("%s: %+v", name, report.Problems)
			continue
		}
		fix := report.Problems[0].Fix
		if !strings.Contains(fix, tt.want) || strings.Contains(fix, tt.never) {
			t.Errorf("%s, which is down with %q: want %q and not %q in the fix: %s", name, i.Error, tt.want, tt.never, fix)
		}
	}
}
