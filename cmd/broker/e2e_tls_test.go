package main_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbroker/brokertest"
	"mcpbroker/provider"
)

// selfSigned writes cert.pem and key.pem for this machine into dir and returns
// a pool that trusts them.
func selfSigned(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return certify(t, dir, key)
}

// certify is selfSigned with this key.
func certify(t *testing.T, dir string, key crypto.Signer) *x509.CertPool {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: der},
		"key.pem":  {Type: "PRIVATE KEY", Bytes: secret},
	} {
		write(t, filepath.Join(dir, name), string(pem.EncodeToMemory(block)))
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return pool
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

const tlsConfig = "port = 0\n[tls]\ncert = 'cert.pem'\nkey = 'key.pem'\n"

// spec 03 5.2 and 5.6: TLS of the broker's own, the pair beside the file that
// names it; a client over https, a provider over wss.
func TestTLS(t *testing.T) {
	p := newBroker(t, filepath.Join("conf", "broker.toml"))
	conf := filepath.Join(p.cmd.Dir, "conf")
	if err := os.Mkdir(conf, 0o700); err != nil {
		t.Fatal(err)
	}
	pool := selfSigned(t, conf)
	write(t, filepath.Join(conf, "broker.toml"), tlsConfig)
	b := runBroker(p)
	b.await(b.stderr, `started on https://localhost:\d+ \(TLS\)\n`)

	trusting := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	t.Cleanup(trusting.CloseIdleConnections)
	client := &http.Client{Transport: trusting}
	slow := startSlow(t, "wss://127.0.0.1:"+b.port+"/provider/slow", provider.WithHTTPClient(client))
	close(slow.finish)

	url := "https://127.0.0.1:" + b.port + "/slow/mcp"
	opened, _ := postTLS(t, client, url, "", brokertest.InitializeFrame)
	_, body := postTLS(t, client, url, opened.Header.Get("Mcp-Session-Id"), slowCall)
	if diff := cmp.Diff(`{"jsonrpc":"2.0","id":"s","result":{"content":[{"type":"text","text":"done"}]}}`, body); diff != "" {
		t.Errorf("answer over TLS (-want +got):\n%s", diff)
	}
	if v := opened.TLS.Version; v < tls.VersionTLS12 {
		t.Errorf("TLS version %x", v)
	}
}

func postTLS(t *testing.T, client *http.Client, url, session, body string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

// spec 03 5.6: certificate or key that cannot be used.
func TestUnreadableTLS(t *testing.T) {
	for _, tt := range []struct {
		name, cert, cause string // cause with the path of cert.pem for %
	}{
		{"missing", "", "open %: no such file or directory"},
		{"junk", "not a certificate", "tls: failed to find any PEM data in certificate input"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newBroker(t, "broker.toml")
			selfSigned(t, p.cmd.Dir)
			write(t, filepath.Join(p.cmd.Dir, "broker.toml"), tlsConfig)
			cert := filepath.Join(p.cmd.Dir, "cert.pem")
			if err := os.Remove(cert); err != nil {
				t.Fatal(err)
			}
			if tt.cert != "" {
				write(t, cert, tt.cert)
			}
			cause := strings.ReplaceAll(tt.cause, "%", "cert.pem")
			code := "ENOENT "
			if tt.cert != "" {
				code = ""
			}
			refused(t, p,
				"[mcp-broker] Cannot start: TLS is enabled but the material could not be read: "+cause+". Certificate: cert.pem. Key: key.pem. "+
					"Paths in the configuration file are relative to that file, paths in MCP_BROKER_TLS_CERT and MCP_BROKER_TLS_KEY to the working directory. "+
					"Generate a pair with openssl, or switch TLS off with protocol = \"http\".\n"+
					"[mcp-broker] Underlying error: "+code+cause+"\n"+
					"[mcp-broker] Configuration in effect: host=127.0.0.1 port=0\n")
		})
	}
}
