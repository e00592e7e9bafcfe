package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbroker/config"
	"mcpbroker/internal/freeport"
)

func (f findings) String() string {
	var b strings.Builder
	for _, one := range f {
		fmt.Fprintf(&b, "%s %s: %s [%s]\n", one.Status, one.Check, one.Text, one.Fix)
	}
	return b.String()
}

func expectFindings(t *testing.T, f findings, want string) {
	t.Helper()
	if diff := cmp.Diff(want, f.String()); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

// fakePath makes a directory with executables the whole PATH.
func fakePath(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	return dir
}

func TestDoctor(t *testing.T) {
	port := freePort(t)
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := fakePath(t, "npx")
	if err := os.Symlink(own, filepath.Join(dir, "broker")); err != nil {
		t.Skip(err)
	}
	b := newBench(t)
	writeFile(t, "broker.toml", fmt.Sprintf("port = %d\nallowedOrigins = ['https://app.example']\n", port))
	b.expect(t, b.do("doctor"), 0, fmt.Sprintf(`ok    configuration  broker.toml
ok    address        127.0.0.1:%d is free
ok    TLS            off
ok    origins        https://app.example
ok    origins        WebSocket upgrades are not checked: a page of any origin, opened on this machine, can call and publish
                     checkUpgradeOrigins = true applies allowedOrigins to them, too; providers and clients that are no pages send no Origin
ok    PATH           %[2]s/broker is this program; a desktop host may have a shorter PATH and need the whole path
ok    npx            %[2]s/npx
`, port, dir), "")

	b = newBench(t)
	writeFile(t, "broker.toml", "prot = 1\n[slots.x]\ninitialize = 'no'\n")
	b.expect(t, b.do("doctor", "broker.toml", "-o", "json"), 1,
		`{"checks":[{"check":"configuration","status":"fail","text":"broker.toml:1:1: unknown key \"prot\" (did you mean \"port\"?)","fix":"correct it; 'broker check FILE' validates it again. The checks that need it were left out."},`+
			`{"check":"configuration","status":"fail","text":"broker.toml:3:14: slots.\"x\".initialize must be cache or relay, not \"no\"","fix":"correct it; 'broker check FILE' validates it again. The checks that need it were left out."},`+
			fmt.Sprintf(`{"check":"PATH","status":"ok","text":"%[1]s/broker is this program; a desktop host may have a shorter PATH and need the whole path"},{"check":"npx","status":"ok","text":"%[1]s/npx"}]}`+"\n", dir), "")
}

// freePort is below the ports that systems give to sockets which ask for any: nobody
// gets it meanwhile by chance.
func freePort(t *testing.T) int {
	t.Helper()
	port, release, err := freeport.Reserve(1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return port
}

func TestDoctorCommands(t *testing.T) {
	var f findings
	fakePath(t)
	f.ownCommand("/opt/broker")
	f.commands()
	dir := fakePath(t, "broker")
	f.ownCommand("/opt/broker")
	own, _ := os.Executable()
	expectFindings(t, f, fmt.Sprintf(`warn PATH: broker is not on the PATH: a host with "command": "broker" cannot start it [give hosts the whole path, "command": "/opt/broker", or put its directory on the PATH]
warn PATH: broker is not on the PATH: a host with "command": "broker" cannot start it [give hosts the whole path, "command": %q, or put its directory on the PATH]
ok npx: not on the PATH; only hosts that go through mcp-remote need it []
warn PATH: hosts with "command": "broker" start %s/broker, which is not this program [give hosts the whole path, "command": "/opt/broker", if this one is meant]
`, own, dir))
}

// The address: free, taken by a broker, taken by something else, not there.
func TestDoctorAddress(t *testing.T) {
	examine := func(t *testing.T, at string) findings {
		t.Helper()
		host, port, err := net.SplitHostPort(at)
		if err != nil {
			t.Fatal(err)
		}
		b := newBench(t)
		cfg := config.Default()
		cfg.Host = host
		if _, err := fmt.Sscan(port, &cfg.Port); err != nil {
			t.Fatal(err)
		}
		var f findings
		b.checkAddress(t.Context(), &f, cfg)
		return f
	}
	broker := full(t)
	at := broker.Listener.Addr().String()
	holder := portHolder(broker.Listener.Addr().(*net.TCPAddr).Port)
	if want := fmt.Sprintf("process %d)", os.Getpid()); holder != "" && !strings.HasSuffix(holder, want) {
		t.Errorf("held by%s, not by %s", holder, want)
	}
	expectFindings(t, examine(t, at), "ok address: "+at+" is held by mcp-broker 1.2.3"+holder+", up 3h12m: it runs already []\n")

	broker.set("initialize", `error {"code":-32000,"message":"Provider \"_broker\" not connected"}`)
	expectFindings(t, examine(t, at), "ok address: "+at+" is held by a broker"+holder+": it runs already []\n")

	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	at = other.Listener.Addr().String()
	expectFindings(t, examine(t, at), "fail address: "+at+" is held by another program"+holder+" [end that program, or pick another port (port, MCP_BROKER_PORT)]\n")

	expectFindings(t, examine(t, "203.0.113.1:3000"), "fail address: 203.0.113.1:3000: this machine does not have that address "+
		"[use 127.0.0.1 for this machine only or 0.0.0.0 for all interfaces (host, MCP_BROKER_HOST)]\n"+
		"warn address: bound wider than this machine, and there is no authentication: whoever reaches the port may call and publish "+
		"[set host = \"127.0.0.1\", or let only trusted machines reach the port]\n")
}

// certificate writes a self-signed pair.
func certificate(t *testing.T, cert, key string, template x509.Certificate) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(1)
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	if err := os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestDoctorTLS(t *testing.T) {
	t.Chdir(t.TempDir())
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	certificate(t, "cert.pem", "key.pem", x509.Certificate{
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(0, 0, 60),
		DNSNames: []string{"localhost", "broker.example"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	})
	certificate(t, "bare.pem", "other.pem", x509.Certificate{NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0)})
	writeFile(t, "open.pem", readFile(t, "key.pem"))
	const renew = "[renew the certificate and restart the broker]\n"
	tests := []struct {
		cert, key, host string
		at              time.Time
		want            string
	}{
		{"", "", "", now, "ok TLS: off []\n"},
		{"cert.pem", "key.pem", "127.0.0.1", now, "ok TLS: certificate for localhost, broker.example, 127.0.0.1, valid until 2026-03-03; key matches []\n"},
		{"cert.pem", "key.pem", "192.0.2.1", now, "ok TLS: certificate for localhost, broker.example, 127.0.0.1, valid until 2026-03-03; key matches []\n"},
		{"cert.pem", "key.pem", "other.example", now, "ok TLS: certificate for localhost, broker.example, 127.0.0.1, valid until 2026-03-03; key matches []\n" +
			"warn TLS: the certificate is not for \"other.example\" [reach the broker under one of its names: localhost, broker.example, 127.0.0.1]\n"},
		{"cert.pem", "key.pem", "127.0.0.1", now.AddDate(0, 0, 50), "warn TLS: the certificate expires in 10d00h, on 2026-03-03 " + renew},
		{"cert.pem", "key.pem", "127.0.0.1", now.AddDate(0, 0, 60), "fail TLS: the certificate expired on 2026-03-03 " + renew},
		{"cert.pem", "key.pem", "127.0.0.1", now.AddDate(0, 0, -1), "fail TLS: the certificate is not valid before 2026-01-02T02:04:05Z [check the clock of this machine, or wait]\n"},
		{"cert.pem", "open.pem", "127.0.0.1", now, "ok TLS: certificate for localhost, broker.example, 127.0.0.1, valid until 2026-03-03; key matches []\n" +
			"warn TLS: open.pem can be read by other users (mode 0644) [chmod 600 open.pem]\n"},
		{"bare.pem", "other.pem", "127.0.0.1", now, "ok TLS: certificate for , valid until 2027-01-02; key matches []\n" +
			"warn TLS: the certificate has no subject alternative names: no current client accepts it [make one with subjectAltName]\n"},
		{"cert.pem", "other.pem", "127.0.0.1", now, "fail TLS: cert.pem and other.pem do not go together: tls: private key does not match public key " +
			"[use a PEM certificate chain, the broker's own first, and the private key it was made for]\n"},
		{"cert.pem", "gone.pem", "127.0.0.1", now, "fail TLS: open gone.pem: no such file or directory [correct tls.cert and tls.key, or let this user read the files]\n"},
	}
	for _, tt := range tests {
		cfg := config.Default()
		cfg.Host, cfg.TLS = tt.host, config.TLS{Cert: tt.cert, Key: tt.key}
		var f findings
		f.tls(cfg, tt.at)
		expectFindings(t, f, tt.want)
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestDoctorOrigins(t *testing.T) {
	const browser = "[write it as a browser sends it, such as https://app.example or http://localhost:5173]\n"
	tests := []struct{ toml, want string }{
		{"", "ok origins: none: requests of pages in browsers are refused, those of other clients are not []\n"},
		{"[[www.mounts]]\nurlPrefix = '/'\ndir = '.'", "warn origins: the broker serves pages, and answers the requests of none: pages carry an Origin header, and allowedOrigins lists none " +
			"[allowedOrigins = [\"http://127.0.0.1:3000\"], or the origin the pages are opened from]\n"},
		{"allowedOrigins = ['https://a.example', 'http://localhost:5173']", "ok origins: https://a.example, http://localhost:5173 []\n"},
		{"allowedOrigins = ['https://a.example/']", "warn origins: entry \"https://a.example/\" matches no browser: origins are compared verbatim, as scheme://host[:port] without a path or wildcard " + browser},
		{"allowedOrigins = ['null', 'https://a:443', 'http://a:80', 'https://A.example', 'http://a:8080']",
			"warn origins: \"null\" is the origin of every sandboxed page and local file, whoever wrote it [serve the page over http and list that origin]\n" +
				"warn origins: \"https://a:443\" matches no browser: the default port is left out of Origin [write https://a]\n" +
				"warn origins: \"http://a:80\" matches no browser: the default port is left out of Origin [write http://a]\n" +
				"warn origins: \"https://A.example\" matches no browser: scheme and host are lower case in Origin [write https://a.example]\n"},
		{"allowedOrigins = {pattern = '^https://[a-z]+\\.example$'}", "ok origins: /^https://[a-z]+\\.example$/ []\n"},
		{"allowedOrigins = {pattern = 'example'}", "warn origins: the pattern /example/ is searched anywhere in the origin: it lets in longer host names that contain a match [begin it with ^ and end it with $]\n"},
	}
	t.Chdir(t.TempDir())
	for _, tt := range tests {
		cfg, err := config.Parse("broker.toml", []byte(tt.toml+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		var f findings
		f.allowedOrigins(cfg)
		expectFindings(t, f, tt.want)
	}
}

// F-44: what a list of origins does not keep away is said, and where others can reach
// the port it is a warning.
func TestDoctorUpgradeOrigins(t *testing.T) {
	const fix = " [checkUpgradeOrigins = true applies allowedOrigins to them, too; providers and clients that are no pages send no Origin]\n"
	none := "ok origins: none: requests of pages in browsers are refused, those of other clients are not []\n"
	for _, tt := range []struct{ toml, want string }{
		{"", none + "ok origins: WebSocket upgrades are not checked: a page of any origin, opened on this machine, can call and publish" + fix},
		{"host = '0.0.0.0'", none + "warn origins: WebSocket upgrades are not checked, and the address is wider than this machine: a page of any origin can call and publish" + fix},
		{"host = '0.0.0.0'\ncheckUpgradeOrigins = true", none},
	} {
		cfg, err := config.Parse("broker.toml", []byte(tt.toml+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		var f findings
		f.origins(cfg)
		expectFindings(t, f, tt.want)
	}
}
