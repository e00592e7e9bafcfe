package main

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// spec 01 5.11, spec 03 5.7.
func TestPageToOpen(t *testing.T) {
	const base = "http://localhost:3000"
	const forms = `: www.open (MCP_BROKER_OPEN) takes true, a path such as "/index.html", or a URL that begins with http://localhost:3000/`
	root, docs := []string{"/"}, []string{"/docs", "/a%20b"}
	for _, c := range []struct {
		open          string
		prefixes      []string
		page, refusal string
	}{
		{"", root, "", ""},
		{"", nil, "", ""},
		{"true", root, base + "/", ""},
		{"/", root, base + "/", ""},
		{"/docs/x.html?a=b#c", root, base + "/docs/x.html?a=b#c", ""},
		{"/a b", root, base + "/a%20b", ""},
		{`/\evil.example`, root, base + "/%5Cevil.example", ""},
		{"http://localhost:3000", root, base + "/", ""},
		{"http://localhost:3000/x", root, "http://localhost:3000/x", ""},
		{"HTTP://LOCALHOST:3000/x", root, "http://LOCALHOST:3000/x", ""},

		{"//localhost:3000/x", root, "", "//localhost:3000/x" + forms},
		{"//evil.example/x", root, "", "//evil.example/x" + forms},
		{"http://localhost:3001/", root, "", "http://localhost:3001/" + forms},
		{"http://localhost/", root, "", "http://localhost/" + forms},
		{"https://localhost:3000/", root, "", "https://localhost:3000/" + forms},
		{"http://127.0.0.1:3000/", root, "", "http://127.0.0.1:3000/" + forms},
		{"http://localhost:3000@evil.example/", root, "", "http://localhost:3000@evil.example/" + forms},
		{"http://localhost:3000.evil.example/", root, "", "http://localhost:3000.evil.example/" + forms},
		{"localhost:3000/x", root, "", "localhost:3000/x" + forms},
		{"javascript:alert(1)", root, "", "javascript:alert(1)" + forms},
		{"file:///etc/passwd", root, "", "file:///etc/passwd" + forms},
		{"yes", root, "", "yes" + forms},
		{"/%zz", root, "", "/%zz" + forms},

		{"/docs", docs, base + "/docs", ""},
		{"/docs/", docs, base + "/docs/", ""},
		{"/d%6fcs/x", docs, base + "/d%6fcs/x", ""},
		{"/a%20b/x", docs, base + "/a%20b/x", ""},
		{"true", docs, "", base + "/: no mount covers it; mounted are /docs, /a%20b"},
		{"/docsx", docs, "", base + "/docsx: no mount covers it; mounted are /docs, /a%20b"},
		{"/docs/../x", docs, "", base + "/docs/../x: no mount covers it; mounted are /docs, /a%20b"},
		{"true", nil, "", base + "/: no directory is mounted; set www.mounts, or MCP_BROKER_WWW_DIR for one at /"},
	} {
		page, refusal := pageToOpen(c.open, base, c.prefixes)
		if page != c.page || refusal != c.refusal {
			t.Errorf("%q with %v:\n got %q %q\nwant %q %q", c.open, c.prefixes, page, refusal, c.page, c.refusal)
		}
	}
	if page, _ := pageToOpen("https://localhost/x", "https://localhost:443", root); page != "https://localhost/x" {
		t.Errorf("the default port: %q", page)
	}
}

func TestBrowserCommand(t *testing.T) {
	const page = "http://localhost:3000/"
	for goos, want := range map[string][]string{
		"linux": {"xdg-open", page}, "freebsd": {"xdg-open", page}, "darwin": {"open", page},
		"windows": {"rundll32", "url.dll,FileProtocolHandler", page},
	} {
		if diff := cmp.Diff(want, browserCommand(goos, page)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", goos, diff)
		}
	}
}

// The page is opened once the broker runs; a launcher that fails is a warning
// (spec 01 8.3), and so is a page no mount has.
func TestRunOpensPage(t *testing.T) {
	for _, c := range []struct {
		name, open string
		err        error
		wantPage   string
		wantLine   string
	}{
		{"opened", "/x.html", nil, "http://localhost:4711/x.html", ""},
		{"no launcher", "1", errors.New(`exec: "xdg-open": not found`), "http://localhost:4711/",
			`[mcp-broker] Could not launch a browser for http://localhost:4711/: exec: "xdg-open": not found`},
		{"refused", "elsewhere", nil, "", "[mcp-broker] Not opening elsewhere: www.open (MCP_BROKER_OPEN) takes true"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			opened := make(chan string, 1)
			b.browse = func(page string) error { opened <- page; return c.err }
			if err := os.Mkdir("site", 0o755); err != nil {
				t.Fatal(err)
			}
			b.environ = []string{"MCP_BROKER_WWW_DIR=site", "MCP_BROKER_OPEN=" + c.open}
			wait := b.start(t)
			if c.wantPage != "" {
				if page := <-opened; page != c.wantPage {
					t.Errorf("opened %q, want %q", page, c.wantPage)
				}
			}
			for !strings.Contains(b.err.String(), c.wantLine) {
				<-b.err.changed
			}
			b.signal <- os.Interrupt
			if code := wait(); code != 0 || len(opened) != 0 {
				t.Errorf("exit code %d, %d more pages", code, len(opened))
			}
		})
	}
}
