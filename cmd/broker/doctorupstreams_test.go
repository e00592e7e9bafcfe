package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"mcpbroker/config"
)

// What upstreams need is looked for as a start would, and each lack has its fix.
func TestDoctorUpstreams(t *testing.T) {
	own := t.TempDir()
	bundles, err := filepath.Abs("../../ingress/bundle/testdata/signed")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(own, "server"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	t.Setenv("PATH", "")
	t.Chdir(t.TempDir())
	writeFile(t, "vars.env", "A=${UNSET_OF_FILE}\n")
	writeFile(t, "notes.mcpb", "x")
	text := fmt.Sprintf(`
[[stdioUpstreams]]
name = "good"
command = "${NAME}"
vars = { NAME = "server" }
env = { PATH = %q }
[[stdioUpstreams]]
name = "bad"
command = "nosuch"
cwd = "nowhere"
envFile = "vars.env"
args = ["${UNSET_ARG}"]
env = { B = "${file:nofile}" }
[[stdioUpstreams]]
name = "gone"
command = "nosuch"
envFile = "no.env"
env = { PATH = "/nowhere" }
[[mcpServers]]
name = "up"
url = "ws://%[2]s/mcp"
[[mcpServers]]
name = "away"
url = "http://127.0.0.1:1/mcp"
headers = { Authorization = "Bearer ${UNSET_TOKEN}" }
[[mcpbBundles]]
name = "notes"
path = "notes.mcpb"
publicKey = "no.pem"
[[mcpbBundles]]
name = "asks"
path = %[3]q
publicKey = %[4]q
[[mcpServers]]
name = "off"
url = "http://127.0.0.1:1/mcp"
enabled = false
`, own, l.Addr(), bundles+"/leaf.mcpb", bundles+"/leaf.pub.pem")
	cfg, err := config.Parse("broker.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	const set = " [set the variable in the environment of the broker or in vars of the entry, or write ${NAME:-default}]\n"
	cwd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	var f findings
	f.upstreams(t.Context(), cfg)
	expectFindings(t, f, "ok upstream good: stdio, "+own+"/server []\n"+
		"fail upstream bad: envFile.A: unresolved: the variable UNSET_OF_FILE is not set"+set+
		"fail upstream bad: env.B: unresolved: the file "+cwd+"/nofile cannot be read: no such file or directory [put the file there, where the user of the broker can read it, or correct the path]\n"+
		"fail upstream bad: args[0]: unresolved: the variable UNSET_ARG is not set"+set+
		"fail upstream bad: cwd: nowhere: no such file or directory [make that directory, or correct cwd]\n"+
		"fail upstream gone: envFile: no.env: no such file or directory [write that file as NAME=value lines, or correct envFile]\n"+
		"fail upstream gone: command: command \"nosuch\" was not found in PATH (/nowhere) [install it, correct command, or give its directory in PATH of env]\n"+
		"ok upstream up: websocket, "+l.Addr().String()+" []\n"+
		"fail upstream away: headers.Authorization: unresolved: the variable UNSET_TOKEN is not set"+set+
		"warn upstream away: url: 127.0.0.1:1 cannot be reached: connect: connection refused [start that server, or correct url; the broker tries again by itself]\n"+
		"fail upstream notes: publicKey: no.pem: no such file or directory [put the file there, or correct publicKey; then: broker bundle verify FILE --public-key KEY]\n"+
		"fail upstream asks: userConfig: missing user_config value: \"key\" [correct userConfig; broker bundle inspect FILE tells what the bundle asks for]\n"+
		"ok upstream off: not started: enabled = false []\n")
}
