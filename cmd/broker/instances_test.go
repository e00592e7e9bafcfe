package main

import (
	"os"
	"strings"
	"testing"
)

// keeper is a broker with the upstreams of testdata/remote.
func keeper(t *testing.T) *fakeBroker {
	f := full(t)
	for _, name := range []string{"instances_list", "instance_status"} {
		f.tool(name, testdata(t, "remote/"+name+".json"))
	}
	return f
}

// Spec 06, "What an operator sees", as people read it and as machines do.
func TestInstances(t *testing.T) {
	tests := []struct{ args, file string }{
		{"get instances", "instances.txt"}, {"describe instance files", "instance.txt"},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			f, file := keeper(t), testdata(t, "remote/"+tt.file)
			b := newBench(t)
			b.environ = []string{envURL + "=" + f.URL}
			if code := b.do(strings.Fields(tt.args)...); code != 0 || b.err.String() != "" {
				t.Errorf("exit code %d, standard error %q", code, b.err)
			}
			golden(t, file, b.out.String())
		})
	}
	for args, file := range map[string]string{
		"get instances -o json": "instances_list", "describe instance files -o json": "instance_status", "logs files -o json": "instance_status",
	} {
		t.Run(args, func(t *testing.T) {
			f := keeper(t)
			raw, err := os.ReadFile(testdata(t, "remote/"+file+".json"))
			if err != nil {
				t.Fatal(err)
			}
			b := newBench(t)
			b.environ = []string{envURL + "=" + f.URL}
			b.expect(t, b.do(strings.Fields(args)...), 0, string(compact(raw))+"\n", "")
		})
	}
}

// The last lines of standard error, fit for a terminal.
func TestLogs(t *testing.T) {
	f := keeper(t)
	for args, want := range map[string]string{
		"logs files":            "ready\nclear\\x1b[2J\nno such directory\n",
		"logs files --lines 1":  "no such directory\n",
		"logs --lines=2 files":  "clear\\x1b[2J\nno such directory\n",
		"logs files --lines 99": "ready\nclear\\x1b[2J\nno such directory\n",
	} {
		b := newBench(t)
		b.environ = []string{envURL + "=" + f.URL}
		b.expect(t, b.do(strings.Fields(args)...), 0, want, "")
	}
	f.set("tools/call instance_status", `{"content":[],"structuredContent":{"name":"crm","kind":"sse","stderr":[]},"isError":false}`)
	b := newBench(t)
	b.expect(t, b.do("logs", "crm", "--url", f.URL), 0, "", "\"crm\" is not started by the broker: what it writes is not here. 'broker describe instance' has its events.\n")
	b = newBench(t)
	b.expect(t, b.do("logs", "crm", "--lines", "0", "--url", f.URL), 1, "", "broker logs: --lines must be 1 or more\nSee 'broker logs --help'.\n")
}

// Spec 07 row 8: only what is up again exits 0.
func TestRestartCommand(t *testing.T) {
	object := func(outcome string) string {
		return `{"name":"files","outcome":"` + outcome + `","message":"It is so.","waitedMs":5,"instance":{"name":"files","stderr":["no TOKEN"]}}`
	}
	for _, c := range []struct {
		outcome, out, err string
		code              int
	}{
		{"up", "It is so.\n", "", 0},
		{"asked", "It is so.\n", "", 0},
		{"failed", "", "no TOKEN\nIt is so.\n", 1},
		{"pending", "", "It is so.\n", 4},
		{"something new", "", "It is so.\n", 4},
	} {
		f := newFakeBroker(t)
		failed := "false"
		if c.outcome == "failed" {
			failed = "true"
		}
		f.set("tools/call instance_restart", `{"content":[{"type":"text","text":"x"}],"structuredContent":`+object(c.outcome)+`,"isError":`+failed+`}`)
		b := newBench(t)
		b.expect(t, b.do("restart", "files", "--url", f.URL), c.code, c.out, c.err)
		b = newBench(t)
		message := "It is so.\n"
		if c.code == 0 {
			message = ""
		}
		b.expect(t, b.do("restart", "files", "-o", "json", "--url", f.URL), c.code, object(c.outcome)+"\n", message)
		if !strings.Contains(f.log(), `"arguments":{"name":"files"},"name":"instance_restart"`) {
			t.Errorf("asked\n%s", f.log())
		}
	}
}

// A broker without upstreams, and one that does not know the name.
func TestInstanceRefusals(t *testing.T) {
	f := newFakeBroker(t)
	for _, tool := range []string{"instances_list", "instance_status", "instance_restart"} {
		f.set("tools/call "+tool, `error {"code":-32602,"message":"Unknown tool: `+tool+`"}`)
	}
	const none = "The broker keeps no upstreams: its configuration has no stdioUpstreams, mcpServers or mcpbBundles\n"
	for _, args := range []string{"describe instance x", "logs x", "restart x"} {
		b := newBench(t)
		b.expect(t, b.do(append(strings.Fields(args), "--url", f.URL)...), 4, "", none)
	}
	b := newBench(t)
	b.expect(t, b.do("get", "instances", "--url", f.URL), 0, "INSTANCE  KIND  VERDICT  UP  RESTARTS  ATTEMPT  NEXT RETRY\n", none)
	b = newBench(t)
	b.expect(t, b.do("get", "instances", "-o", "json", "--url", f.URL), 0, `{"count":0,"instances":[]}`+"\n", "")
	b = newBench(t)
	b.expect(t, b.do("logs", "--url", f.URL, "--generate-bash-completion"), 0, "", "")

	for _, tool := range []string{"instance_status", "instance_restart"} {
		f.set("tools/call "+tool, `{"content":[{"type":"text","text":"Unknown instance: \"x\"."}],"isError":true}`)
	}
	for _, args := range []string{"describe instance x", "logs x", "restart x"} {
		b := newBench(t)
		b.expect(t, b.do(append(strings.Fields(args), "--url", f.URL)...), 4, "", "Unknown instance: \"x\".\n")
	}
	for args, want := range map[string]string{
		"logs":              "broker logs: name an upstream (see 'broker get instances')\nSee 'broker logs --help'.\n",
		"restart":           "broker restart: name an upstream (see 'broker get instances')\nSee 'broker restart --help'.\n",
		"describe instance": "broker describe instance: name an upstream (see 'broker get instances')\nSee 'broker describe instance --help'.\n",
		"restart a b":       "broker restart: unexpected argument \"b\"\nSee 'broker restart --help'.\n",
	} {
		b := newBench(t)
		b.expect(t, b.do(strings.Fields(args)...), 1, "", want)
	}
}

// Names of upstreams are proposed where a shell may be told them.
func TestCompleteInstances(t *testing.T) {
	f := keeper(t)
	for args, want := range map[string]string{"describe instance": "crm\nfiles\nnotes\n", "logs": "crm\nfiles\nnotes\n", "restart": "crm\nfiles\nnotes\n", "restart crm": ""} {
		b := newBench(t)
		b.environ = []string{envURL + "=" + f.URL}
		b.expect(t, b.do(append(strings.Fields(args), "--generate-bash-completion")...), 0, want, "")
	}
}
