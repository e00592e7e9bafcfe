package firmware

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"mcpbroker/firmware/firmwaretest"
)

// spec 04 8: the tests of the Python binding, which start and kill brokers of this
// checkout by themselves.
func TestPython(t *testing.T) {
	require(t, "python3", "python3")
	build(t, "shared")
	broker, err := brokerBinary()
	if err != nil {
		t.Fatal(err)
	}
	dir := firmwaretest.Dir(t)
	right, wrong := newAuthority(t, "right"), newAuthority(t, "wrong")
	cert, key := inFiles(t, right.server(nil, "broker.test"))

	// -X dev and -W error: a file or thread left behind is an error.
	p := command(t, "python3", "-X", "dev", "-W", "error", "-m", "unittest", "discover", "-v", "-s", "tests", "-t", ".")
	p.cmd.Dir = filepath.Join(dir, "python")
	p.cmd.Env = append(p.cmd.Env,
		"PYTHONDONTWRITEBYTECODE=1",
		"MCPLINK_BROKER="+broker,
		"MCPLINK_LIBRARY="+filepath.Join(dir, "build", "shared", "libmcplink.so"),
		"MCPLINK_TLS_CERT="+cert, "MCPLINK_TLS_KEY="+key,
		"MCPLINK_TLS_CA="+right.file, "MCPLINK_TLS_WRONG_CA="+wrong.file)
	p.start()
	select {
	case <-p.exited: // the many tests of one process may take longer than one wait
	case <-time.After(6 * patience):
		t.Fatalf("the tests still run after %s", 6*patience)
	}
	if m := p.next(`^(OK|FAILED)(?: \((.*)\))?$`); m[1] != "OK" {
		t.Errorf("python3 -m unittest: %s %s", m[1], m[2])
	} else if m[2] != "" {
		if os.Getenv("CI") == "true" {
			t.Errorf("CI runs every test: %s", m[2])
		}
		t.Logf("python3 -m unittest: %s", m[2])
	}
	if code := p.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// spec 04 8: the shared library shows what is marked as its interface, and nothing
// else.
func TestSharedLibrarySymbols(t *testing.T) {
	require(t, "nm", "binutils")
	build(t, "shared")
	p := command(t, "nm", "-D", "--defined-only", filepath.Join(firmwaretest.Dir(t), "build", "shared", "libmcplink.so")).start()
	if code := p.exit(); code != 0 {
		t.Fatalf("nm: exit code %d", code)
	}
	seen := false
	for _, line := range p.all() {
		if !regexp.MustCompile(` T mcplink_`).MatchString(line) || regexp.MustCompile(`mcplink_(priv|tls|posix|wake)_`).MatchString(line) {
			t.Errorf("the library shows %s", line)
		}
		seen = seen || regexp.MustCompile(` T mcplink_client_poll$`).MatchString(line)
	}
	if !seen {
		t.Error("the library does not show mcplink_client_poll")
	}
}
