package bundle

import (
	"archive/zip"
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"mcpbroker/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func write(t testing.TB, path string, text []byte) string {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// signer is the key of bundles that tests make.
var signer = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))

func publicPEM(t testing.TB, key crypto.PublicKey) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// signed writes a bundle with a detached signature and returns options that
// accept it.
func signed(t testing.TB, raw []byte) Options {
	t.Helper()
	dir := t.TempDir()
	o := Options{Name: "demo", CacheDir: filepath.Join(dir, "cache", "mcpb")}
	o.Path = write(t, filepath.Join(dir, "demo.mcpb"), raw)
	o.PublicKey = write(t, filepath.Join(dir, "key.pem"), publicPEM(t, signer.Public()))
	write(t, o.Path+".sig", ed25519.Sign(signer, raw))
	return o
}

// part is an entry of an archive that a test makes.
type part struct {
	name, body string
	change     func(*zip.FileHeader)
	raw        bool // stored, with sizes and checksum as change leaves them
}

func makeZip(t testing.TB, parts ...part) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, p := range parts {
		h := &zip.FileHeader{Name: p.name, Method: zip.Deflate}
		create := w.CreateHeader
		if p.raw {
			h.Method, h.CRC32 = zip.Store, crc32.ChecksumIEEE([]byte(p.body))
			h.CompressedSize64, h.UncompressedSize64 = uint64(len(p.body)), uint64(len(p.body))
			create = w.CreateRaw
		}
		if p.change != nil {
			p.change(h)
		}
		to, err := create(h)
		if err != nil {
			t.Fatal(err)
		}
		if p.name != "" && p.name[len(p.name)-1] == '/' {
			continue
		}
		if _, err := to.Write([]byte(p.body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// nodeManifest starts a file of the bundle.
const nodeManifest = `{"manifest_version":"0.3","name":"demo","version":"1.0.0","description":"d","author":{"name":"a"},
	"server":{"type":"node","entry_point":"index.js","mcp_config":{"command":"node","args":["${__dirname}/index.js"]}}}`

// sound returns an archive that opens, with more parts.
func sound(t testing.TB, more ...part) []byte {
	t.Helper()
	return makeZip(t, append([]part{{name: "manifest.json", body: nodeManifest}, {name: "index.js", body: "1"}}, more...)...)
}

// refused checks kind and text of a refusal.
func refused(t *testing.T, err, kind error, text string) {
	t.Helper()
	if err == nil {
		t.Fatalf("accepted, want %q", text)
	}
	if err.Error() != text {
		t.Errorf("error\n\t%s\nwant\n\t%s", err, text)
	}
	if !errors.Is(err, kind) {
		t.Errorf("error %q is not %q", err, kind)
	}
}
