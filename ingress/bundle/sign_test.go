package bundle

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

var rsaKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

func testRSA(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	key, err := rsaKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func testECDSA(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func privatePEM(t *testing.T, kind string, der []byte, err error) []byte {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// spec 03 4.3: the tools that make keys and signatures.
func TestKeygenSignVerify(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	pair, err := Keygen(dir)
	if err != nil {
		t.Fatal(err)
	}
	if pair.Private != filepath.Join(dir, "mcpb-signing.key.pem") || pair.Public != filepath.Join(dir, "mcpb-signing.pub.pem") {
		t.Errorf("files %s and %s", pair.Private, pair.Public)
	}
	info, err := os.Stat(pair.Private)
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("private key: mode %v, %v", info.Mode(), err)
	}
	for file, kind := range map[string]string{pair.Private: "PRIVATE KEY", pair.Public: "PUBLIC KEY"} {
		text, err := os.ReadFile(file)
		if err != nil || !strings.HasPrefix(string(text), "-----BEGIN "+kind+"-----\n") {
			t.Errorf("%s: %q, %v", file, text, err)
		}
	}
	path := write(t, filepath.Join(dir, "b.mcpb"), sound(t))
	s, err := Sign(t.Context(), SignOptions{Path: path, Key: pair.Private})
	if want := (Signature{Method: Detached, File: path + ".sig", Key: pair.Key}); err != nil || s != want {
		t.Fatalf("signature %+v, %v; want %+v", s, err, want)
	}
	v, err := Verify(t.Context(), Options{Path: path, PublicKey: pair.Public})
	if err != nil || v.Signature != s {
		t.Fatalf("%+v, %v", v, err)
	}
	if sig, err := os.ReadFile(s.File); err != nil || len(sig) != 64 {
		t.Errorf("%d bytes in the signature, %v", len(sig), err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A key that may have signed bundles is never lost, and no half pair is left.
func TestKeygenReplacesNothing(t *testing.T) {
	for _, file := range []string{PrivateKeyFile, PublicKeyFile} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, file), []byte("mine"))
		if _, err := Keygen(dir); !errors.Is(err, ErrWrite) || !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s exists: %v", file, err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 1 {
			t.Errorf("%s exists: %v, %v", file, entries, err)
		}
		if text, _ := os.ReadFile(filepath.Join(dir, file)); string(text) != "mine" {
			t.Errorf("%s is now %q", file, text)
		}
	}
}

// Every key and encoding that signs verifies.
func TestSignWithEveryKey(t *testing.T) {
	ec, r := testECDSA(t), testRSA(t)
	ecDER, ecErr := x509.MarshalECPrivateKey(ec)
	ec8, ec8Err := x509.MarshalPKCS8PrivateKey(ec)
	r8, r8Err := x509.MarshalPKCS8PrivateKey(r)
	tests := []struct {
		name, key string
		text      []byte
		public    crypto.PublicKey
	}{
		{"SEC 1", "ECDSA P-384 SHA256:", privatePEM(t, "EC PRIVATE KEY", ecDER, ecErr), ec.Public()},
		{"ECDSA", "ECDSA P-384 SHA256:", privatePEM(t, "PRIVATE KEY", ec8, ec8Err), ec.Public()},
		{"PKCS 1", "RSA 2048 SHA256:", privatePEM(t, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(r), nil), r.Public()},
		{"RSA", "RSA 2048 SHA256:", privatePEM(t, "PRIVATE KEY", r8, r8Err), r.Public()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path := write(t, filepath.Join(dir, "b.mcpb"), fixture(t, "signed/leaf.mcpb"))
			out := filepath.Join(dir, "signature")
			s, err := Sign(t.Context(), SignOptions{Path: path, Key: write(t, filepath.Join(dir, "key"), tt.text), Out: out})
			if err != nil || !strings.HasPrefix(s.Key, tt.key) || s.File != out {
				t.Fatalf("%+v, %v", s, err)
			}
			o := Options{Path: path, Signature: out, PublicKey: write(t, filepath.Join(dir, "pub"), publicPEM(t, tt.public))}
			if v, err := Verify(t.Context(), o); err != nil || v.Signature != s {
				t.Errorf("%+v, %v", v, err)
			}
		})
	}
}

func TestSignRefusals(t *testing.T) {
	dir := t.TempDir()
	private, err := x509.MarshalPKCS8PrivateKey(signer)
	key := write(t, filepath.Join(dir, "key"), privatePEM(t, "PRIVATE KEY", private, err))
	encrypted := write(t, filepath.Join(dir, "encrypted"), privatePEM(t, "ENCRYPTED PRIVATE KEY", []byte("x"), nil))
	old := write(t, filepath.Join(dir, "old"),
		pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Headers: map[string]string{"DEK-Info": "x"}, Bytes: []byte("x")}))
	public := write(t, filepath.Join(dir, "public"), publicPEM(t, signer.Public()))
	good := write(t, filepath.Join(dir, "b.mcpb"), sound(t))
	text := write(t, filepath.Join(dir, "text"), []byte("text"))
	bad := sound(t, part{name: "x", body: "content", raw: true})
	bad[bytes.Index(bad, []byte("content"))] ^= 1
	corrupt := write(t, filepath.Join(dir, "corrupt"), bad)
	tests := []struct {
		o    SignOptions
		kind error
		want string
	}{
		{SignOptions{Path: good, Key: key + "x"}, ErrNotFound, "private key file not found at " + key + "x"},
		{SignOptions{Path: good, Key: public}, ErrKey, "private key at " + public + " cannot be used: it holds no PEM private key"},
		{SignOptions{Path: good, Key: encrypted}, ErrKey,
			"private key at " + encrypted + " cannot be used: it is encrypted; decrypt it first, with openssl pkey for example"},
		{SignOptions{Path: good, Key: old}, ErrKey,
			"private key at " + old + " cannot be used: it is encrypted; decrypt it first, with openssl pkey for example"},
		{SignOptions{Path: good + "x", Key: key}, ErrNotFound, "bundle file not found at " + good + "x"},
		{SignOptions{Path: text, Key: key}, ErrArchive, "not a ZIP archive (no end of central directory)"},
		{SignOptions{Path: corrupt, Key: key}, ErrArchive, `corrupt ZIP: wrong checksum of "x"`},
	}
	for _, tt := range tests {
		_, err := Sign(t.Context(), tt.o)
		refused(t, err, tt.kind, tt.want)
	}
	if _, err := Sign(t.Context(), SignOptions{Path: good, Key: key, Out: filepath.Join(dir, "no", "where")}); !errors.Is(err, ErrWrite) {
		t.Errorf("no directory: %v", err)
	}
	if made, err := filepath.Glob(filepath.Join(dir, "*.sig")); err != nil || len(made) != 0 {
		t.Errorf("signatures of what was refused: %v, %v", made, err)
	}
}
