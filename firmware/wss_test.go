package firmware

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"mcpbroker/brokertest"
)

// inFiles writes a certificate and its key where a broker finds them.
func inFiles(t *testing.T, pair tls.Certificate) (cert, key string) {
	t.Helper()
	secret, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	key = filepath.Join(t.TempDir(), "key.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	if err := os.WriteFile(key, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return writePEM(t, pair.Certificate[0]), key
}

// clientOver speaks to a broker with TLS, at an http URL.
func clientOver(t *testing.T, a *authority, url, name string) *brokertest.Client {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	d := tls.Dialer{Config: &tls.Config{RootCAs: pool, ServerName: name}}
	return brokertest.NewClientVia(t, url, func(ctx context.Context, network, address string) (net.Conn, error) {
		return d.DialContext(ctx, network, address)
	})
}

// spec 04 11, step 8: accepted with the authority's certificate, refused in words
// without it, and the refusal is a failed attempt, not a disconnect.
func TestRoundTripTLS(t *testing.T) {
	requireTLS(t)
	right, wrong := newAuthority(t, "right"), newAuthority(t, "wrong")
	cert, key := inFiles(t, right.server(nil, "broker.test"))
	b := startBroker(t, fmt.Sprintf("[tls]\ncert = %q\nkey = %q\n", cert, key))
	start := func(slot, ca, name string) *process {
		return startDevice(t, b.port, "--name", slot, "--tls", "--ca", ca, "--verify-name", name)
	}
	good := start("pump-1", right.file, "broker.test")
	good.awaitConnect(1)
	for words, device := range map[string]*process{
		"unknown authority": start("pump-2", wrong.file, "broker.test"),
		"wrong name":        start("pump-3", right.file, "else.test"),
	} {
		device.next(retryFailed + `error="TLS refused" attempts=1 `)
		device.next("^tls certificate: " + words + "$")
		if n := device.count(disconnected); n != 0 {
			t.Errorf("%d lines %s", n, disconnected)
		}
	}
	s := &session{t: t, client: clientOver(t, right, b.mcp("pump-1"), "broker.test")}
	s.client.Initialize()
	s.echo("pump-1", awkward)
}

// requireTLS skips a test where the host tool is built without TLS.
func requireTLS(t *testing.T) {
	t.Helper()
	probe := command(t, hostTool(t, "mcplink-provider"), "--tls", "--ca", "none.pem").start()
	if code := probe.exit(); code != 2 {
		t.Fatalf("exit code %d", code)
	}
	if probe.count("built without TLS") > 0 {
		missing(t, "mbed TLS is not installed (Debian package libmbedtls-dev)")
	}
}
