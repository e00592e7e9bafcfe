package firmware

import (
	"path/filepath"
	"strings"
	"testing"

	"mcpbroker/firmware/firmwaretest"
)

// What cannot work ends the program with exit code 2 and a line that says why.
func TestHostToolRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		tool, args, line string
	}{
		{"mcplink-provider", "--prot 1", "unknown flag --prot (see --help)"},
		{"mcplink-provider", "name", "unknown flag name (see --help)"},
		{"mcplink-provider", "--name", "--name needs a value"},
		{"mcplink-provider", "--port 65536", `--port must be a number from 1 to 65535, not "65536"`},
		{"mcplink-provider", "--port=99999999999999999999", `--port must be a number from 1 to 65535, not "99999999999999999999"`},
		{"mcplink-provider", "--port 30x", `--port must be a number from 1 to 65535, not "30x"`},
		{"mcplink-provider", "--quiet=yes", "--quiet takes no value"},
		{"mcplink-provider", "--name=", "cannot start: "},
		{"mcplink-provider", "--host=", "cannot start: "},
		{"mcplink-provider", "--name " + strings.Repeat("x", 65), "--name may have 64 bytes"},
		{"mcplink-provider", "--name " + strings.Repeat("x", 64) + " --multiplex", "cannot start: "},
		{"mcplink-provider", "--rx 255", `--rx must be a number from 256 to 16777216, not "255"`},
		{"mcplink-plant", "--devices 0", `--devices must be a number from 1 to 10000, not "0"`},
	} {
		p := command(t, hostTool(t, tt.tool), strings.Fields(tt.args)...).start()
		if code := p.exit(); code != 2 {
			t.Errorf("%s %s: exit code %d, want 2", tt.tool, tt.args, code)
		}
		if all := p.all(); len(all) != 1 || !strings.HasPrefix(all[0], tt.line) {
			t.Errorf("%s %s:\n got %q\nwant %q", tt.tool, tt.args, all, tt.line)
		}
	}
	// A token that would be a header of its own.
	p := command(t, hostTool(t, "mcplink-provider"), "--token", "x\r\nHost: y").start()
	if code := p.exit(); code != 2 || p.count("^cannot start: .*header") != 1 {
		t.Errorf("a token with a line end: exit code %d, %q", code, p.all())
	}
}

// A program that is built without TLS never answers a wish for it with less.
func TestHostToolWithoutTLS(t *testing.T) {
	t.Parallel()
	build(t, "samples-without-tls")
	tool := filepath.Join(firmwaretest.Dir(t), "build", "host-without-tls", "mcplink-provider")
	p := command(t, tool, "--tls", "--ca", "ca.pem").start()
	if code := p.exit(); code != 2 || p.count("^this program was built without TLS: ") != 1 {
		t.Errorf("exit code %d, %q", code, p.all())
	}
}
