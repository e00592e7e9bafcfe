package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mcpbroker/actors/wire"
	"mcpbroker/brokertest"
	"mcpbroker/config"
)

// clientsDoc is docs/clients.md.
type clientsDoc struct{ text string }

func readClientsDoc(t *testing.T) clientsDoc {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "clients.md"))
	if err != nil {
		t.Fatal(err)
	}
	return clientsDoc{string(text)}
}

// blocks returns the fenced blocks of a language.
func (d clientsDoc) blocks(language string) (found []string) {
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(d.text, -1) {
		found = append(found, m[1])
	}
	return found
}

// spans returns what stands between single backquotes and matches an expression.
func (d clientsDoc) spans(expression string) []string {
	found := map[string]bool{}
	for _, m := range regexp.MustCompile("`("+expression+")`").FindAllStringSubmatch(d.text, -1) {
		found[m[1]] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// Every key and variable that docs/clients.md names exists.
func TestClientsDocKeys(t *testing.T) {
	doc := readClientsDoc(t)
	example, err := os.ReadFile(filepath.Join("..", "..", "broker.example.toml"))
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	for _, v := range config.EnvVars() {
		keys[v.Key] = true
	}
	foreign := []string{"mcpServers"} // of the files of hosts
	named := doc.spans(`[a-z]+(?:[A-Z][a-z]+)+|tls\.[a-z]+`)
	if len(named) < 5 {
		t.Fatalf("found only the keys %v", named)
	}
	for _, key := range named {
		inExample := regexp.MustCompile(`(?m)^#?` + regexp.QuoteMeta(key) + ` = `).Match(example)
		if !keys[key] && !inExample && !slices.Contains(foreign, key) {
			t.Errorf("there is no key %s", key)
		}
	}
	for _, block := range doc.blocks("toml") {
		if _, err := config.Parse("clients.toml", []byte(block)); err != nil {
			t.Errorf("%v in\n%s", err, block)
		}
	}
	for _, name := range regexp.MustCompile(`MCP_BROKER_[A-Z_]+`).FindAllString(doc.text, -1) {
		if name == "MCP_BROKER_URL" { // of the commands, not of the broker
			continue
		}
		if !slices.ContainsFunc(config.EnvVars(), func(v config.EnvVar) bool { return v.Name == name }) {
			t.Errorf("there is no variable %s", name)
		}
	}
}

// Every error that docs/clients.md explains is one the broker sends.
func TestClientsDocErrors(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join("..", "..", "actors", "wire", "testdata", "errors.golden"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []*wire.Error{wire.NoLongerConnected("pump-1"), wire.LeftOut("pump-1", "handshake in progress"), wire.UnknownAggregated("tool", "lathe-start")} {
		golden = fmt.Appendf(golden, ": %d %s\n", e.Code, e.Message)
	}
	rows := regexp.MustCompile("(?m)^\\| (-32\\d{3}) `(.*?)` \\|").FindAllStringSubmatch(readClientsDoc(t).text, -1)
	if len(rows) < 5 {
		t.Fatalf("found only %d errors", len(rows))
	}
	for _, row := range rows {
		if !strings.Contains(string(golden), ": "+row[1]+" "+row[2]) {
			t.Errorf("no error is %s %s", row[1], row[2])
		}
	}
}

// Every command line of the broker in docs/clients.md is one: the command exists,
// and its flags do.
func TestClientsDocCommands(t *testing.T) {
	doc := readClientsDoc(t)
	var lines [][]string
	for _, span := range doc.spans(`broker [a-z].*?`) {
		lines = append(lines, strings.Fields(span)[1:])
	}
	for _, block := range doc.blocks("json") {
		var file struct {
			Servers map[string]struct {
				Command string
				Args    []string
			} `json:"mcpServers"`
		}
		if err := json.Unmarshal([]byte(block), &file); err != nil {
			t.Errorf("%v in\n%s", err, block)
		}
		for _, server := range file.Servers {
			if server.Command == "broker" {
				lines = append(lines, server.Args)
			}
		}
	}
	if len(lines) < 3 {
		t.Fatalf("found only the commands %v", lines)
	}
	binary, err := brokerBinary()
	if err != nil {
		t.Fatal(err)
	}
	help := map[string]*process{}
	for _, line := range lines {
		p := help[line[0]]
		if p == nil {
			p = command(t, binary, line[0], "--help")
			p.cmd.Env = append(p.cmd.Env, "GORACE=atexit_sleep_ms=0")
			help[line[0]] = p
			p.start()
		}
		if code := p.exit(patience); code != 0 {
			t.Errorf("broker %s is no command", line[0])
		}
		for _, arg := range line[1:] {
			if strings.HasPrefix(arg, "--") && !strings.Contains(p.stdout.String(), arg+" ") && !strings.Contains(p.stdout.String(), arg+",") {
				t.Errorf("broker %s has no flag %s", line[0], arg)
			}
		}
	}
}

// Every address of the broker in docs/clients.md leads somewhere.
func TestClientsDocAddresses(t *testing.T) {
	b := startBroker(t, "--demo")
	found := map[string]bool{}
	for _, m := range regexp.MustCompile("((?:http|ws)://localhost:3000/[^\\s\"`)]*|`/demo/[^`]*)").FindAllString(readClientsDoc(t).text, -1) {
		found[strings.Replace(m, "`/", "http://localhost:3000/", 1)] = true
	}
	if len(found) < 4 {
		t.Fatalf("found only the addresses %v", found)
	}
	for _, documented := range slices.Sorted(maps.Keys(found)) {
		url := strings.Replace(documented, "localhost:3000", "127.0.0.1:"+b.port, 1)
		if strings.HasPrefix(url, "ws:") {
			brokertest.Dial(t, url, nil)
			continue
		}
		if got := probe(t, http.MethodGet, url); got != http.StatusNotFound {
			continue
		}
		if got := probe(t, http.MethodPost, url); got == http.StatusNotFound {
			t.Errorf("nothing is at %s", documented)
		}
	}
}

// probe returns the status of a request. A stream is not read.
func probe(t *testing.T, method, url string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Header.Get("Content-Type") != "text/event-stream" {
		_, _ = io.Copy(io.Discard, resp.Body)
	}
	return resp.StatusCode
}
