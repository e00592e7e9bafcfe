package mcpbroker_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"mcpbroker/actors/msg"
	"mcpbroker/brokertest"
)

func quote(s string) string { return strconv.Quote(s) }

// linkSelf makes path another name of the test binary.
func linkSelf(t testing.TB, path string) {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(binary, path); err != nil {
		t.Fatal(err)
	}
}

// write makes a file and returns its path.
func write(t testing.TB, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// environment asks a child for its environment.
func (h *house) environment(slot string) map[string]string {
	h.t.Helper()
	env := map[string]string{}
	for pair := range strings.SplitSeq(h.text(h.client(slot), "env", "{}"), "\n") {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	return env
}

// A child has a small environment and never the broker's settings; its own
// variables come from the entry, from a file, from vars, from defaults and from
// secret files.
func TestChildEnvironment(t *testing.T) {
	t.Setenv("PLANT_SECRET", "of the broker")
	t.Setenv("PLANT_REGION", "north")
	t.Setenv("MCP_BROKER_PROVIDER_TOKEN", "never")
	t.Setenv("PLANT_EMPTY", "")
	dir := t.TempDir()
	envFile := write(t, filepath.Join(dir, "child.env"), "# comment\n\nexport FROM_FILE=\"file\"\nBOTH=file\nREGION=${PLANT_REGION}\r\n")
	secret := write(t, filepath.Join(dir, "secret"), "s3cret\n")
	h := newHouse(t, child("minimal")+
		child("own")+"env.OWN = \"own\"\nenv.BOTH = \"entry\"\nenv.VAR = \"${SITE}/${PLANT_REGION}\"\nenv.DEFAULT = \"${PLANT_EMPTY:-default}\"\n"+
		"env.EMPTY = \"\"\nenv.SECRET = \"${file:"+secret+"}\"\nenv.LITERAL = \"$${SITE}\"\nvars.SITE = \"lyon\"\nenvFile = "+quote(envFile)+"\n"+
		child("names")+"inheritEnv = [\"PLANT_SECRET\"]\n"+
		child("everything")+"inheritEnv = true\n")
	const none = "\x00"
	for slot, want := range map[string]map[string]string{
		"minimal": {"PATH": os.Getenv("PATH"), "PLANT_SECRET": none, "PLANT_REGION": none, "MCP_BROKER_PROVIDER_TOKEN": none},
		"own": {
			"OWN": "own", "BOTH": "entry", "FROM_FILE": "file", "REGION": "north", "VAR": "lyon/north", "DEFAULT": "default", "EMPTY": "",
			"SECRET": "s3cret", "LITERAL": "${SITE}", "SITE": none, "PLANT_SECRET": none,
		},
		"names":      {"PLANT_SECRET": "of the broker", "PLANT_REGION": none, "MCP_BROKER_PROVIDER_TOKEN": none},
		"everything": {"PLANT_SECRET": "of the broker", "PLANT_REGION": "north", "MCP_BROKER_PROVIDER_TOKEN": none},
	} {
		env := h.environment(slot)
		for name, value := range want {
			got, set := env[name]
			if !set {
				got = none
			}
			if got != value {
				t.Errorf("%s: %s is %q, want %q", slot, name, got, value)
			}
		}
	}
}

// Spec 06, spec 07 row 88: a setting that cannot be resolved stops that start with
// the names of field and variable; the other upstreams serve. It is resolved anew
// for every attempt.
func TestUnresolvedSetting(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	const why = `unresolved: the variable PLANT_TOKEN is not set`
	h := newHouse(t, child("env")+"env.TOKEN = \"Bearer ${PLANT_TOKEN}\"\n"+
		child("args", "${PLANT_TOKEN}")+
		child("cwd")+"cwd = \"/${PLANT_TOKEN}\"\n"+
		child("file")+"env.TOKEN = \"${file:"+missing+"}\"\n"+
		child("envFile")+"envFile = "+quote(missing)+"\n"+
		"\n[[mcpServers]]\nname = \"header\"\nurl = \"http://127.0.0.1:1/mcp\"\nheaders = { Authorization = \"${PLANT_TOKEN}\" }\n"+
		"\n[[mcpServers]]\nname = \"url\"\nurl = \"http://${PLANT_TOKEN}/mcp\"\n"+
		child("fine")+"env.TOKEN = \"${PLANT_TOKEN:-}\"\n")
	for slot, want := range map[string]string{
		"env": "env.TOKEN: " + why, "args": "args[1]: " + why, "cwd": "cwd: " + why, "header": "headers.Authorization: " + why, "url": "url: " + why,
		"file":    "env.TOKEN: unresolved: the file " + missing + " cannot be read: no such file or directory",
		"envFile": "envFile: " + missing + ": no such file or directory",
	} {
		i := h.verdict(slot, msg.Failed)
		if i.Error != want || !i.Unresolved || i.PID != 0 {
			t.Errorf("%s is in error with %q (unresolved %t), want %q", slot, i.Error, i.Unresolved, want)
		}
	}
	c := brokertest.NewClient(t, h.MCPURL("env"))
	brokertest.Is(t, "initialize", c.Initialize(), http.StatusOK, h.refusedStart(0, "env", "env.TOKEN: "+why))
	if got := h.environment("fine")["TOKEN"]; got != "" {
		t.Errorf("an optional variable is %q", got)
	}

	t.Setenv("PLANT_TOKEN", "now")
	if err := h.RestartUpstream(t.Context(), "env"); err != nil {
		t.Fatal(err)
	}
	if i := h.verdict("env", msg.Live); i.Unresolved || i.Error != "" {
		t.Errorf("%+v", i)
	}
	if got := h.environment("env")["TOKEN"]; got != "Bearer now" {
		t.Errorf("the variable is %q once it is set", got)
	}
}

// A secret that a child prints before it dies reaches neither its callers nor the
// log, whatever its way into the child.
func TestSecretsOfAChildAreMasked(t *testing.T) {
	t.Setenv("PLANT_TOKEN", "from-the-environment")
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("from-a-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := newHouse(t, "\n[[stdioUpstreams]]\nname = \"s\"\ncommand = \"sh\"\n"+
		`args = ["-c", "echo $A $API_KEY $B, site $SITE >&2; exit 1"]`+"\n"+
		`env = { A = "${PLANT_TOKEN}", API_KEY = "literal-key", B = "x ${file:`+secret+`}", SITE = "${SITE}" }`+"\n"+
		`vars = { SITE = "lyon-north" }`+"\n")
	const said = "*** *** x ***, site lyon-north"
	i := h.verdict("s", msg.Failed)
	if want := "it exited with code 1; its stderr ends with: " + said; i.Error != want {
		t.Errorf("the error is %q, want %q", i.Error, want)
	}
	if len(i.Tail) != 1 || i.Tail[0] != said {
		t.Errorf("the tail is %q", i.Tail)
	}
	c := brokertest.NewClient(t, h.MCPURL("s"))
	brokertest.Is(t, "initialize", c.Initialize(), http.StatusOK, h.refusedStart(0, "s", i.Error))
	h.Log.Wait(t, "[s] "+said)
}

// Secrets are found among what a child inherits, in a file of variables, in URLs and in
// vars; a value of many lines is masked line by line, and a plain number is none.
func TestSecretsOfAnEnvironmentAreMasked(t *testing.T) {
	t.Setenv("PLANT_KEY", "of-the-broker")
	t.Setenv("PLANT_PEM_KEY", "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\n-----END KEY-----")
	envFile := write(t, filepath.Join(t.TempDir(), "child.env"), "ANY=whatever-it-is\nSHORT=short\n")
	h := newHouse(t, "\n[[stdioUpstreams]]\nname = \"s\"\ncommand = \"sh\"\n"+
		`args = ["-c", "echo $PLANT_KEY $ANY $SHORT pw p4ssword $PORT_KEY; echo \"$PLANT_PEM_KEY\" >&2; exit 1"]`+"\n"+
		`env = { DB = "postgres://u:p4ssword@h/db", PORT_KEY = "8080" }`+"\n"+
		`inheritEnv = ["PLANT_KEY", "PLANT_PEM_KEY"]`+"\nenvFile = "+quote(envFile)+"\n"+
		"\n[[stdioUpstreams]]\nname = \"nowhere\"\ncommand = \"/does/not/${SITE_TOKEN}\"\nvars = { SITE_TOKEN = \"lyon-north\" }\n")
	i := h.verdict("s", msg.Failed)
	if want := `it exited with code 1; its stderr ends with: *** | *** | ***; its standard output is not JSON-RPC: "*** *** short pw *** 8080"`; i.Error != want {
		t.Errorf("the error is %q, want %q", i.Error, want)
	}
	if i, want := h.verdict("nowhere", msg.Failed), `command "/does/not/***" does not exist`; i.Error != want {
		t.Errorf("the error is %q, want %q", i.Error, want)
	}
	for _, secret := range []string{"of-the-broker", "whatever-it-is", "p4ssword", "MIIEvQ", "lyon-north"} {
		if lines := h.Log.Lines(secret); len(lines) > 0 {
			t.Errorf("log: %q", lines)
		}
	}
}

// What operators see of an upstream names variables, not their values.
func TestTargetHidesSecrets(t *testing.T) {
	t.Setenv("PLANT_TOKEN", "t0ken")
	h := newHouse(t, child("s", "-journal", "", "--token=literal", "--url", "${PLANT_TOKEN}")+
		"\n[[mcpServers]]\nname = \"r\"\nurl = \"http://127.0.0.1:1/mcp?key=literal\"\n")
	if got := h.instance("s").Target; strings.Contains(got, "literal") || strings.Contains(got, "t0ken") || !strings.HasSuffix(got, " -journal  --token=*** --url ${PLANT_TOKEN}") {
		t.Errorf("the target is %q", got)
	}
	if got := h.instance("r").Target; got != "http://127.0.0.1:1/mcp?***" {
		t.Errorf("the target is %q", got)
	}
}
