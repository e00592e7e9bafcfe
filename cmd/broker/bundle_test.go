package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// bundleBench is a bench with bundles in its working directory.
func bundleBench(t *testing.T, names ...string) *bench {
	t.Helper()
	from, err := filepath.Abs(filepath.Join("..", "..", "ingress", "bundle", "testdata"))
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t)
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Base(name), string(text))
	}
	return b
}

// again is the same working directory with nothing written yet.
func (b *bench) again() *bench {
	b.out, b.err = newOutput(), newOutput()
	b.stdout, b.stderr = b.out, b.err
	return b
}

// spec 03 4.3: a key pair, a signature, and what they are for.
func TestBundleSignature(t *testing.T) {
	b := bundleBench(t, "packed.mcpb", "detached/rsa.pub.pem")
	if code := b.do("bundle", "keygen", "keys"); code != 0 {
		t.Fatalf("exit code %d: %s", code, b.err)
	}
	key, rest, _ := strings.Cut(b.out.String(), "\n")
	if !regexp.MustCompile(`^Ed25519 SHA256:[A-Za-z0-9+/]{43}$`).MatchString(key) {
		t.Errorf("key %q", key)
	}
	private, public := filepath.Join("keys", "mcpb-signing.key.pem"), filepath.Join("keys", "mcpb-signing.pub.pem")
	if want := "wrote " + private + " (private: keep it off the machines that run bundles)\nwrote " + public + " (publicKey of mcpbBundles)\n"; rest != want {
		t.Errorf("output %q, want %q", rest, want)
	}
	b.again()
	b.expect(t, b.do("bundle", "sign", "packed.mcpb", "--key", private), 0, "packed.mcpb: signed with "+key+"\nwrote packed.mcpb.sig\n", "")
	ok := "packed.mcpb: ok, demo 1.2.3, 3 files\nsignature  detached (packed.mcpb.sig)\nkey        " + key + "\n"
	b.again()
	b.expect(t, b.do("bundle", "verify", "packed.mcpb", "--public-key", public), 0, ok, "")
	b.again()
	b.expect(t, b.do("bundle", "verify", "--public-key="+public, "packed.mcpb"), 0, ok, "")
	b.again()
	b.expect(t, b.do("bundle", "verify", "packed.mcpb", "--public-key", "rsa.pub.pem"), 1, "",
		"packed.mcpb: detached signature is invalid for the configured public key.\n")
	b.again()
	b.expect(t, b.do("bundle", "sign", "--out", "other.sig", "--key", private, "packed.mcpb"), 0,
		"packed.mcpb: signed with "+key+"\nwrote other.sig\n", "")
	b.again()
	b.expect(t, b.do("bundle", "verify", "packed.mcpb", "--public-key", public, "--signature", "other.sig"), 0,
		strings.Replace(ok, "packed.mcpb.sig", "other.sig", 1), "")
	b.again()
	code := b.do("bundle", "keygen", "keys")
	if text := b.err.String(); code != 1 || !strings.HasPrefix(text, "broker bundle keygen: the key cannot be written: ") {
		t.Errorf("exit code %d, %q", code, text)
	}
}

// spec 05 section 7: the packer's own signature, with its certificate.
func TestBundleEmbeddedSignature(t *testing.T) {
	b := bundleBench(t, "signed/leaf.mcpb", "signed/root.pem", "cms/ec.pem")
	if code := b.do("bundle", "verify", "leaf.mcpb", "--public-key", "root.pem"); code != 0 {
		t.Fatalf("exit code %d: %s", code, b.err)
	}
	golden := regexp.MustCompile(`^leaf\.mcpb: ok, demo 1\.2\.3, 3 files\nsignature  embedded\nkey        RSA 2048 SHA256:\S{43}\n` +
		`signer     CN=Test Signer\nissuer     CN=Test Intermediate\nvalid      2020-01-01 to 2120-01-01\n$`)
	if !golden.MatchString(b.out.String()) {
		t.Errorf("output:\n%s", b.out)
	}
	b.again()
	b.expect(t, b.do("bundle", "verify", "leaf.mcpb", "--public-key", "ec.pem"), 1, "",
		"leaf.mcpb: embedded signature is refused: x509: certificate signed by unknown authority.\n")
}

func TestBundleInspect(t *testing.T) {
	unsigned, embedded, asJSON := testdata(t, "bundle-packed.txt"), testdata(t, "bundle-leaf.txt"), testdata(t, "bundle-leaf.json")
	b := bundleBench(t, "packed.mcpb", "signed/leaf.mcpb")
	for name, file := range map[string]string{"packed.mcpb": unsigned, "leaf.mcpb": embedded} {
		b.again()
		if code := b.do("bundle", "inspect", name); code != 0 || b.err.String() != "" {
			t.Errorf("%s: exit code %d, %s", name, code, b.err)
		}
		golden(t, file, b.out.String())
	}
	b.again()
	if code := b.do("bundle", "inspect", "leaf.mcpb", "-o", "json"); code != 0 || b.err.String() != "" {
		t.Errorf("JSON: exit code %d, %s", code, b.err)
	}
	golden(t, asJSON, b.out.String())
	writeFile(t, "packed.mcpb.sig", "x")
	b.again()
	b.do("bundle", "inspect", "packed.mcpb")
	want := "\nsignatures\ndetached   packed.mcpb.sig\nwhether to trust them: broker bundle verify packed.mcpb --public-key KEY\n"
	if !strings.Contains(b.out.String(), want) {
		t.Errorf("output:\n%s", b.out)
	}
	leaf, err := os.ReadFile("leaf.mcpb")
	if err != nil {
		t.Fatal(err)
	}
	leaf[len(leaf)-20] ^= 1
	writeFile(t, "leaf.mcpb", string(leaf))
	b.again()
	b.do("bundle", "inspect", "leaf.mcpb")
	if !strings.Contains(b.out.String(), "\nsignatures\nembedded signature is refused: it was not made with the key of its certificate\n") {
		t.Errorf("output:\n%s", b.out)
	}
}

func TestBundleCommandLines(t *testing.T) {
	const help = "See 'broker bundle --help'.\n"
	tests := []struct{ args, want string }{
		{"", "broker bundle: name a command: verify, inspect, sign or keygen\n" + help},
		{"vrfy", "broker bundle: unknown command \"vrfy\"; known are verify, inspect, sign and keygen\n" + help},
		{"verify", "broker bundle verify: a file is missing\nSee 'broker bundle verify --help'.\n"},
		{"verify a.mcpb", "broker bundle verify: name the key that has to vouch for the bundle with --public-key\nSee 'broker bundle verify --help'.\n"},
		{"verify a.mcpb b.mcpb", "broker bundle verify: unexpected argument \"b.mcpb\"\nSee 'broker bundle verify --help'.\n"},
		{"verify a.mcpb --publik-key x", "broker bundle verify: unknown flag --publik-key (did you mean --public-key?)\nSee 'broker bundle verify --help'.\n"},
		{"verify a.mcpb --public-key k.pem", "a.mcpb: bundle file not found at a.mcpb.\n"},
		{"inspect", "broker bundle inspect: a file is missing\nSee 'broker bundle inspect --help'.\n"},
		{"inspect a.mcpb", "a.mcpb: bundle file not found at a.mcpb.\n"},
		{"inspect text", "text: not a ZIP archive (no end of central directory).\n"},
		{"sign a.mcpb", "broker bundle sign: name the private key with --key; 'broker bundle keygen' makes one\nSee 'broker bundle sign --help'.\n"},
		{"sign a.mcpb --key k.pem", "a.mcpb: private key file not found at k.pem.\n"},
		{"keygen a b", "broker bundle keygen: unexpected argument \"b\"\nSee 'broker bundle keygen --help'.\n"},
		{"keygen a -x", "broker bundle keygen: unexpected argument \"-x\"\nSee 'broker bundle keygen --help'.\n"},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			b := newBench(t)
			writeFile(t, "text", "text")
			b.expect(t, b.do(append([]string{"bundle"}, strings.Fields(tt.args)...)...), 1, "", tt.want)
		})
	}
}

func TestBundleInterrupted(t *testing.T) {
	b := bundleBench(t, "packed.mcpb")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code := b.run(ctx, []string{"broker", "bundle", "inspect", "packed.mcpb"})
	b.expect(t, code, exitInterrupted, "", "interrupted\n")
}
