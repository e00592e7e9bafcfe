package bundle

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// spec 03 4.3 item 3, with signatures made by OpenSSL.
func TestDetachedSignature(t *testing.T) {
	packed := fixture(t, "packed.mcpb")
	changed := bytes.Clone(packed)
	changed[100] ^= 1
	tests := []struct{ key, sig string }{
		{"detached/ed25519.pub.pem", "detached/ed25519.sig"},
		{"detached/ecdsa.pub.pem", "detached/ecdsa.sig"},
		{"detached/rsa.pub.pem", "detached/rsa.sig"},
		{"cms/leaf.pem", "detached/rsa.sig"}, // a certificate of the same key
	}
	for _, tt := range tests {
		key, err := parseTrust(fixture(t, tt.key))
		if err != nil {
			t.Fatal(err)
		}
		if !key.verifies(packed, fixture(t, tt.sig)) {
			t.Errorf("%s is refused by %s", tt.sig, tt.key)
		}
		if key.verifies(changed, fixture(t, tt.sig)) {
			t.Errorf("%s is accepted for other content", tt.sig)
		}
		for _, other := range []string{"detached/ed25519.sig", "detached/ecdsa.sig", "detached/rsa.sig", "packed.mcpb"} {
			if other != tt.sig && key.verifies(packed, fixture(t, other)) {
				t.Errorf("%s is accepted by %s", other, tt.key)
			}
		}
	}
}

// spec 03 4.3 items 1 and 3: the exact words, in this order.
func TestSignatureRefusals(t *testing.T) {
	o := signed(t, sound(t))
	sig := o.Path + ".sig"
	tests := []struct {
		name   string
		change func(*Options)
		kind   error
		want   string
	}{
		{"no bundle", func(o *Options) { o.Path += "x"; o.PublicKey = "x" }, ErrNotFound, "bundle file not found at " + o.Path + "x"},
		{"no key", func(o *Options) { o.PublicKey += "x"; o.Signature = "x" }, ErrNotFound, "public key file not found at " + o.PublicKey + "x"},
		{"key not configured", func(o *Options) { o.PublicKey = "" }, ErrKey, "no public key is configured"},
		{"no signature", func(o *Options) { o.Signature = sig + "x" }, ErrNotFound, "signature file not found at " + sig + "x"},
		{"another signature", func(o *Options) { o.Signature = o.PublicKey }, ErrSignature, "detached signature is invalid for the configured public key"},
		{"directory", func(o *Options) { o.Path = filepath.Dir(o.Path) }, ErrUnreadable,
			"bundle file at " + filepath.Dir(o.Path) + " cannot be read: it is not a regular file"},
		{"too large", func(o *Options) { o.Limits.FileBytes = 100 }, ErrLimit, "bundle file at " + o.Path + " is larger than 100 bytes"},
		{"signature too large", func(o *Options) {
			o.Signature = write(t, sig+"2", bytes.Repeat([]byte("x"), maxSideFile+1))
		}, ErrLimit, "signature file at " + sig + "2 is larger than 65536 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := o
			tt.change(&o)
			_, err := Open(t.Context(), o)
			refused(t, err, tt.kind, `mcpb bundle "demo": `+tt.want+", bundle refused.")
			if _, err := os.Stat(o.CacheDir); err == nil {
				t.Error("the cache directory was made for a refused bundle")
			}
		})
	}
}

func TestKeyRefusals(t *testing.T) {
	private := "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
	tests := []struct{ text, want string }{
		{"", "it holds no PEM public key or certificate"},
		{"not PEM", "it holds no PEM public key or certificate"},
		{private, "it holds a private key; name the file with the public one, and keep this one secret"},
	}
	for _, tt := range tests {
		if _, err := parseTrust([]byte(tt.text)); err == nil || err.Error() != tt.want {
			t.Errorf("parseTrust(%q): %v, want %s", tt.text, err, tt.want)
		}
	}
	for _, kind := range []string{"CERTIFICATE", "PUBLIC KEY", "RSA PUBLIC KEY"} {
		if _, err := parseTrust([]byte("-----BEGIN " + kind + "-----\nAAAA\n-----END " + kind + "-----\n")); err == nil {
			t.Errorf("a broken %s is accepted", kind)
		}
	}
	// A file may hold both: the certificate decides.
	both := append([]byte(private), append(publicPEM(t, signer.Public()), fixture(t, "signed/root.pem")...)...)
	key, err := parseTrust(both)
	if err != nil || key.cert == nil || key.cert.Subject.CommonName != "Test Root" {
		t.Errorf("key and certificate: %+v, %v", key.cert, err)
	}
}

const (
	unknownAuthority = "embedded signature is refused: x509: certificate signed by unknown authority"
	otherKey         = "embedded signature is refused: its signer has another key than the configured one"
	otherUsage       = "embedded signature is refused: x509: certificate specifies an incompatible key usage"
	expired          = "embedded signature is refused: x509: certificate has expired or is not yet valid: current time "
)

// spec 05 section 7: bundles that the packer signed, with a chain.
func TestEmbeddedSignature(t *testing.T) {
	tests := []struct{ bundle, key, want string }{
		{"leaf", "signed/leaf.pem", ""},
		{"leaf", "signed/leaf.pub.pem", ""},
		{"leaf", "signed/inter.pem", ""},
		{"leaf", "signed/root.pem", ""},
		{"leaf", "cms/ec.pem", unknownAuthority},
		{"leaf", "detached/ecdsa.pub.pem", otherKey},
		{"web", "signed/root.pem", otherUsage},
		{"web", "signed/leaf.pem", unknownAuthority},
		{"web", "signed/leaf.pub.pem", otherKey},
		{"old", "signed/root.pem", expired},
	}
	for _, tt := range tests {
		o := Options{Path: filepath.Join("testdata", "signed", tt.bundle+".mcpb"), PublicKey: filepath.Join("testdata", tt.key)}
		v, err := Verify(t.Context(), o)
		if tt.want != "" {
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("%s by %s: %v, want %s", tt.bundle, tt.key, err, tt.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s by %s: %v", tt.bundle, tt.key, err)
			continue
		}
		want := Signature{
			Method: Embedded, Key: v.Signature.Key, Subject: "CN=Test Signer", Issuer: "CN=Test Intermediate",
			NotBefore: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2120, 1, 1, 0, 0, 0, 0, time.UTC),
		}
		if diff := cmp.Diff(want, v.Signature); diff != "" || !strings.HasPrefix(v.Signature.Key, "RSA 2048 SHA256:") {
			t.Errorf("signature of %s (-want +got):\n%s", tt.bundle, diff)
		}
		if v.Manifest.Name != "demo" || v.Files != 3 {
			t.Errorf("%s: %d files, manifest %+v", tt.bundle, v.Files, v.Manifest)
		}
	}
}

// A configured key accepts either signature, but one that was named counts alone.
func TestWhichSignatureCounts(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "b.mcpb"), fixture(t, "signed/leaf.mcpb"))
	wrong := write(t, filepath.Join(dir, "wrong"), []byte("wrong"))
	leaf, other := filepath.Join("testdata", "signed", "leaf.pub.pem"), filepath.Join("testdata", "detached", "ecdsa.pub.pem")
	const invalid = "detached signature is invalid for the configured public key"
	check := func(o Options, want string) {
		t.Helper()
		_, err := Verify(t.Context(), o)
		switch {
		case want == "" && err != nil:
			t.Error(err)
		case want != "":
			refused(t, err, ErrSignature, want)
		}
	}
	check(Options{Path: path, PublicKey: leaf}, "")
	check(Options{Path: path, PublicKey: leaf, Signature: wrong}, invalid)
	write(t, path+".sig", []byte("wrong"))
	check(Options{Path: path, PublicKey: leaf}, "")
	check(Options{Path: path, PublicKey: other}, invalid+", and "+otherKey)
	write(t, path, fixture(t, "packed.mcpb"))
	check(Options{Path: path, PublicKey: leaf}, invalid)
	// The detached signature covers the whole file, an embedded one included.
	o := signed(t, fixture(t, "signed/leaf.mcpb"))
	check(o, "")
}

// No flipped bit of a signed bundle is accepted with other content.
func TestEmbeddedSignatureCoversContent(t *testing.T) {
	key, err := parseTrust(fixture(t, "signed/leaf.pub.pem"))
	if err != nil {
		t.Fatal(err)
	}
	whole, packed := fixture(t, "signed/leaf.mcpb"), fixture(t, "packed.mcpb")
	accepted := 0
	for i := range whole {
		changed := bytes.Clone(whole)
		changed[i] ^= 1 << (i % 8)
		content, block, err := splitBlock(changed)
		if err != nil || block == nil {
			continue
		}
		if _, err := key.vouches(content, block, time.Now()); err != nil {
			continue
		}
		accepted++
		if !bytes.Equal(content, packed) {
			t.Errorf("byte %d flipped: accepted", i)
		}
	}
	// Some of the PKCS#7 is not signed: the certificates of the issuers, for one.
	if accepted > len(whole)-len(packed) {
		t.Errorf("%d changes accepted", accepted)
	}
}

func TestSplitBlock(t *testing.T) {
	block := func(der string) string {
		return blockHeader + string(binary.LittleEndian.AppendUint32(nil, uint32(len(der)))) + der + blockFooter
	}
	tests := []struct {
		name, raw, content, pkcs7 string
		err                       error
	}{
		{"none", "zip", "zip", "", nil},
		{"empty file", "", "", "", nil},
		{"one", "zip" + block("der"), "zip", "der", nil},
		{"nothing signed", block("der"), "", "der", nil},
		{"bytes behind it", "zip" + block("der") + "\n", "zip" + block("der") + "\n", "", nil},
		{"two: the outer one", "zip" + block("der") + block("der2"), "zip" + block("der"), "der2", nil},
		{"header in the signature", "zip" + block("a"+blockHeader+"b"), "zip", "a" + blockHeader + "b", nil},
		{"no header", "zip" + blockFooter, "zip" + blockFooter, "", errBlock},
		{"footer only", blockFooter, blockFooter, "", errBlock},
		{"empty", "zip" + block(""), "zip" + block(""), "", errBlock},
		{"wrong length", "zip" + strings.Replace(block("der"), "\x03", "\x04", 1), "zip" + strings.Replace(block("der"), "\x03", "\x04", 1), "", errBlock},
		{"cut length", blockHeader + "\x00" + blockFooter, blockHeader + "\x00" + blockFooter, "", errBlock},
	}
	for _, tt := range tests {
		content, pkcs7, err := splitBlock([]byte(tt.raw))
		if string(content) != tt.content || string(pkcs7) != tt.pkcs7 || err != tt.err {
			t.Errorf("%s: %q, %q, %v", tt.name, content, pkcs7, err)
		}
	}
	large := "zip" + block(strings.Repeat("x", maxBlock+1))
	if _, _, err := splitBlock([]byte(large)); err != errBlock {
		t.Errorf("a block beyond the bound: %v", err)
	}
	if _, pkcs7, err := splitBlock([]byte("zip" + block(strings.Repeat("x", maxBlock)))); err != nil || len(pkcs7) != maxBlock {
		t.Errorf("a block at the bound: %d bytes, %v", len(pkcs7), err)
	}
}
