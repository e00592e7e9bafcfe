package bundle

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// packerDir pins the packer.
const packerDir = "testdata/packer"

var packerFiles = []string{"package.json", "package-lock.json", ".npmrc"}

// installTimeout bounds the download of the packer.
const installTimeout = 5 * time.Minute

// requireTool skips a test that needs a program which is not there; CI runs all.
func requireTool(t *testing.T, name string) {
	t.Helper()
	_, err := exec.LookPath(name)
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		t.Fatalf("%s is not installed: CI runs every test", name)
	default:
		t.Skipf("%s is not installed: the test with the packer is skipped", name)
	}
}

// installPacker returns the packer's script. The packages are kept in the user's
// cache, once per lock file.
func installPacker(t *testing.T) string {
	t.Helper()
	requireTool(t, "node")
	requireTool(t, "npm")
	base, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.New()
	for _, name := range packerFiles {
		sum.Write(fixture(t, filepath.Join("packer", name)))
	}
	dir := filepath.Join(base, "mcpbroker-e2e", fmt.Sprintf("packer-%x", sum.Sum(nil)[:6]))
	script := filepath.Join(dir, "node_modules", "@anthropic-ai", "mcpb", "dist", "cli", "cli.js")
	if _, err := os.Stat(script); err == nil {
		return script
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), "packer-*.tmp")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(temp)
	for _, name := range packerFiles {
		write(t, filepath.Join(temp, name), fixture(t, filepath.Join("packer", name)))
	}
	ctx, cancel := context.WithTimeout(t.Context(), installTimeout)
	defer cancel()
	install := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	install.Dir, install.WaitDelay = temp, time.Second
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	if err := os.Rename(temp, dir); err != nil {
		if _, stat := os.Stat(script); stat != nil {
			t.Fatal(err)
		}
		// Another run was faster.
	}
	return script
}

// selfSigned writes a certificate of a key and the key.
func selfSigned(t *testing.T, dir string, key crypto.Signer) (cert, private string) {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Self Signed"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	cert = write(t, filepath.Join(dir, "cert.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return cert, write(t, filepath.Join(dir, "key.pem"), privatePEM(t, "PRIVATE KEY", secret, err))
}

// The packer itself packs and signs; the bundle is verified with the certificate
// and with its key, and opened. spec 05 section 7.
func TestPacker(t *testing.T) {
	script := installPacker(t)
	dir := t.TempDir()
	packer := func(args ...string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), "node", append([]string{script}, args...)...)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("mcpb %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	source := filepath.Join(dir, "source")
	if err := os.MkdirAll(filepath.Join(source, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	manifest := strings.Replace(nodeManifest, `"author"`, `"user_config":{"dirs":{"type":"directory","title":"D","description":"d","multiple":true,
		"default":["${HOME}"]}},"author"`, 1)
	manifest = strings.Replace(manifest, `/index.js"]`, `/index.js","${user_config.dirs}"]`, 1)
	write(t, filepath.Join(source, "manifest.json"), []byte(manifest))
	write(t, filepath.Join(source, "index.js"), []byte(strings.Repeat("// a comment\n", 1000)))
	if err := os.Chmod(write(t, filepath.Join(source, "bin", "run"), []byte("#!/bin/sh\n")), 0o755); err != nil {
		t.Fatal(err)
	}
	packer("pack", "source", "demo.mcpb")
	cert, private := selfSigned(t, dir, testRSA(t))
	packer("sign", "demo.mcpb", "--cert", cert, "--key", private)

	o := Options{Name: "demo", Path: filepath.Join(dir, "demo.mcpb"), CacheDir: filepath.Join(dir, "cache"), UserConfig: map[string]any{"dirs": []any{"/a", "/b"}}}
	for _, key := range [][]byte{publicPEM(t, testRSA(t).Public()), fixtureAt(t, cert)} {
		o.PublicKey = write(t, filepath.Join(dir, "trusted.pem"), key)
		v, err := Verify(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if v.Signature.Method != Embedded || v.Signature.Subject != "CN=Self Signed" || v.Files != 3 {
			t.Errorf("verdict %+v", v)
		}
	}
	l, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{filepath.Join(l.Dir, "index.js"), "/a", "/b"}; !cmp.Equal(l.Args, want) {
		t.Errorf("arguments %v, want %v", l.Args, want)
	}
	if got, want := tree(t, l.Dir)["bin/run"], (0o755 &^ umask(t)).String(); got != want {
		t.Errorf("mode %s, want %s", got, want)
	}
	if text := fixtureAt(t, filepath.Join(l.Dir, "index.js")); len(text) != 13000 {
		t.Errorf("%d bytes in index.js", len(text))
	}

	o.PublicKey = write(t, filepath.Join(dir, "trusted.pem"), publicPEM(t, signer.Public()))
	_, err = Open(t.Context(), o)
	refused(t, err, ErrSignature, `mcpb bundle "demo": `+otherKey+", bundle refused.")
	raw := fixtureAt(t, o.Path)
	write(t, o.Path+".sig", ed25519.Sign(signer, raw))
	if _, err := Open(t.Context(), o); err != nil {
		t.Errorf("both signatures: %v", err)
	}
	packer("unsign", "demo.mcpb")
	if _, err := Open(t.Context(), o); !errors.Is(err, ErrSignature) {
		t.Errorf("the file has changed: %v", err)
	}
}

func fixtureAt(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A clone installs from the registry its user has configured.
func TestPackerLockNamesNoRegistry(t *testing.T) {
	if strings.Contains(string(fixtureAt(t, filepath.Join(packerDir, "package-lock.json"))), `"resolved"`) {
		t.Error(`package-lock.json has "resolved" members: npm must run with the .npmrc beside it`)
	}
}
