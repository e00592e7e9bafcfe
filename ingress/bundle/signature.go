package bundle

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"time"
)

// signatureSuffix is added to the bundle's name for its detached signature.
const signatureSuffix = ".sig"

// Method is where a signature stands.
type Method string

// Methods.
const (
	Detached Method = "detached" // raw, in a file beside the bundle
	Embedded Method = "embedded" // PKCS#7, in a block at the end of the bundle
)

// Signature describes who signed a bundle.
type Signature struct {
	Method Method
	File   string // of a detached signature
	Key    string // kind and SHA-256 fingerprint of the signer's public key

	// Of the certificate in an embedded signature.
	Subject, Issuer     string
	NotBefore, NotAfter time.Time
}

// authenticate accepts the bundle if the configured key verifies its detached or
// its embedded signature. A detached signature the operator named has to verify:
// the embedded one does not stand in for it.
func authenticate(o Options, raw []byte) (Signature, error) {
	key, err := readTrust(o.PublicKey)
	if err != nil {
		return Signature{}, err
	}
	var refused error
	sig, err := read("signature", o.signature(), maxSideFile)
	switch {
	case err == nil && key.verifies(raw, sig):
		return Signature{Method: Detached, File: o.signature(), Key: describeKey(key.key)}, nil
	case err == nil:
		refused = refusal(ErrSignature, "detached signature is invalid for the configured public key")
	case errors.Is(err, ErrNotFound):
		refused = err
	default:
		return Signature{}, err
	}
	if o.Signature != "" {
		return Signature{}, refused
	}
	content, block, err := splitBlock(raw)
	if err == nil && block == nil {
		return Signature{}, refused
	}
	var signer *x509.Certificate
	if err == nil {
		signer, err = key.vouches(content, block, time.Now())
	}
	if err == nil {
		return describeSigner(signer), nil
	}
	embedded := because(ErrSignature, err, "embedded signature is refused")
	if errors.Is(refused, ErrSignature) {
		embedded.Text = "detached signature is invalid for the configured public key, and " + embedded.Text
	}
	return Signature{}, embedded
}

// verifies checks a detached signature: Ed25519 over the bytes, RSA PKCS #1 v1.5
// and ECDSA (DER) over their SHA-256 (spec 03 4.3).
func (t trust) verifies(raw, sig []byte) bool {
	if key, ok := t.key.(ed25519.PublicKey); ok {
		return ed25519.Verify(key, raw, sig)
	}
	digest := sha256.Sum256(raw)
	switch key := t.key.(type) {
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], sig) == nil
	case *ecdsa.PublicKey:
		return ecdsa.VerifyASN1(key, digest[:], sig)
	}
	return false
}

// vouches checks an embedded signature and that its signer is the configured key,
// or has a certificate issued under the configured one. The time a signer claims
// to have signed at is not believed.
func (t trust) vouches(content, block []byte, now time.Time) (*x509.Certificate, error) {
	signed, err := parseSignedData(block)
	if err != nil {
		return nil, err
	}
	if err := signed.verify(content); err != nil {
		return nil, err
	}
	if sameKey(t.key, signed.signer.PublicKey) {
		return signed.signer, nil
	}
	if t.cert == nil {
		return nil, errors.New("its signer has another key than the configured one")
	}
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	roots.AddCert(t.cert)
	for _, c := range signed.certificates {
		between.AddCert(c)
	}
	_, err = signed.signer.Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: between, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	})
	return signed.signer, err
}

func describeSigner(cert *x509.Certificate) Signature {
	return Signature{
		Method: Embedded, Key: describeKey(cert.PublicKey),
		Subject: cert.Subject.String(), Issuer: cert.Issuer.String(),
		NotBefore: cert.NotBefore, NotAfter: cert.NotAfter,
	}
}
