package bundle

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
)

// SignOptions name a bundle and the key to sign it with.
type SignOptions struct {
	Path   string
	Key    string // PEM file with an unencrypted private key: Ed25519, RSA or ECDSA
	Out    string // the detached signature; Path + ".sig" when empty
	Limits Limits
}

// Sign writes a detached signature, in place of an earlier one. It signs what Open
// would unpack only. Errors are of type *Error, or that of the context.
func Sign(ctx context.Context, o SignOptions) (Signature, error) {
	if o.Out == "" {
		o.Out = o.Path + signatureSuffix
	}
	text, err := read("private key", o.Key, maxSideFile)
	if err != nil {
		return Signature{}, err
	}
	key, err := parsePrivate(text)
	if err != nil {
		return Signature{}, because(ErrKey, err, "private key at %s cannot be used", o.Key)
	}
	raw, err := readBundle(o.Path, o.Limits.withDefaults().FileBytes)
	if err != nil {
		return Signature{}, err
	}
	content, _, _ := splitBlock(raw)
	a, _, err := readArchive(ctx, content, o.Limits)
	if err != nil {
		return Signature{}, err
	}
	if err := a.check(ctx); err != nil {
		return Signature{}, err
	}
	sig, err := sign(key, raw)
	if err != nil {
		return Signature{}, because(ErrKey, err, "private key at %s cannot sign", o.Key)
	}
	if err := replaceFile(o.Out, sig, 0o644); err != nil {
		return Signature{}, because(ErrWrite, err, "the signature cannot be written")
	}
	return Signature{Method: Detached, File: o.Out, Key: describeKey(key.Public())}, nil
}

// sign makes what trust.verifies accepts.
func sign(key crypto.Signer, raw []byte) ([]byte, error) {
	if _, ok := key.Public().(ed25519.PublicKey); ok {
		return key.Sign(rand.Reader, raw, crypto.Hash(0))
	}
	digest := sha256.Sum256(raw)
	return key.Sign(rand.Reader, digest[:], crypto.SHA256)
}

// Names of the files that Keygen writes.
const (
	PrivateKeyFile = "mcpb-signing.key.pem"
	PublicKeyFile  = "mcpb-signing.pub.pem"
)

// KeyPair is what Keygen made.
type KeyPair struct {
	Private string // PKCS #8, for its owner only
	Public  string // SubjectPublicKeyInfo
	Key     string // kind and SHA-256 fingerprint of the public key
}

// Keygen makes an Ed25519 key pair in a directory, which it makes if need be; ""
// is the working directory. It replaces no file. Errors are of type *Error.
func Keygen(dir string) (KeyPair, error) {
	if dir != "" {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return KeyPair{}, because(ErrWrite, err, "the directory cannot be made")
		}
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return KeyPair{}, because(ErrKey, err, "no key can be made")
	}
	pair := KeyPair{filepath.Join(dir, PrivateKeyFile), filepath.Join(dir, PublicKeyFile), describeKey(public)}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return KeyPair{}, because(ErrKey, err, "no key can be made")
	}
	shared, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return KeyPair{}, because(ErrKey, err, "no key can be made")
	}
	if err := createPEM(pair.Private, "PRIVATE KEY", secret, 0o600); err != nil {
		return KeyPair{}, err
	}
	if err := createPEM(pair.Public, "PUBLIC KEY", shared, 0o644); err != nil {
		// Half a pair would be in the way of the next attempt.
		_ = os.Remove(pair.Private)
		return KeyPair{}, err
	}
	return pair, nil
}

// createPEM writes a file that does not exist yet.
func createPEM(path, kind string, der []byte, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return because(ErrWrite, err, "the key cannot be written")
	}
	err = pem.Encode(f, &pem.Block{Type: kind, Bytes: der})
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_ = os.Remove(path)
		return because(ErrWrite, err, "the key cannot be written")
	}
	return nil
}
