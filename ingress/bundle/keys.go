package bundle

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// trust is the key an operator configured.
type trust struct {
	key  crypto.PublicKey
	cert *x509.Certificate // nil unless the file holds a certificate
}

// readTrust reads a PEM file with a public key or certificate.
func readTrust(path string) (trust, error) {
	if path == "" {
		return trust{}, refusal(ErrKey, "no public key is configured")
	}
	text, err := read("public key", path, maxSideFile)
	if err != nil {
		return trust{}, err
	}
	t, err := parseTrust(text)
	if err != nil {
		return trust{}, because(ErrKey, err, "public key at %s cannot be used", path)
	}
	return t, nil
}

// parseTrust takes the first certificate, else the first public key.
func parseTrust(text []byte) (trust, error) {
	var key *pem.Block
	private := false
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		switch {
		case block.Type == "CERTIFICATE":
			cert, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return trust{}, err
			}
			return trust{cert.PublicKey, cert}, supported(cert.PublicKey)
		case strings.HasSuffix(block.Type, "PRIVATE KEY"):
			private = true
		case key == nil && strings.HasSuffix(block.Type, "PUBLIC KEY"):
			key = block
		}
	}
	switch {
	case key == nil && private:
		return trust{}, errors.New("it holds a private key; name the file with the public one, and keep this one secret")
	case key == nil:
		return trust{}, errors.New("it holds no PEM public key or certificate")
	}
	parse := x509.ParsePKIXPublicKey
	if key.Type == "RSA PUBLIC KEY" {
		parse = func(der []byte) (any, error) { return x509.ParsePKCS1PublicKey(der) }
	}
	public, err := parse(key.Bytes)
	if err != nil {
		return trust{}, err
	}
	return trust{key: public}, supported(public)
}

func supported(key crypto.PublicKey) error {
	switch key.(type) {
	case ed25519.PublicKey, *rsa.PublicKey, *ecdsa.PublicKey:
		return nil
	}
	return errors.New("keys are Ed25519, RSA or ECDSA")
}

// parsePrivate reads a private key: PKCS#8, or the older forms of RSA and ECDSA.
func parsePrivate(text []byte) (crypto.Signer, error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		var key any
		var err error
		switch block.Type {
		case "PRIVATE KEY":
			key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		case "RSA PRIVATE KEY":
			if block.Headers["DEK-Info"] != "" {
				return nil, errEncryptedKey
			}
			key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
		case "EC PRIVATE KEY":
			if block.Headers["DEK-Info"] != "" {
				return nil, errEncryptedKey
			}
			key, err = x509.ParseECPrivateKey(block.Bytes)
		case "ENCRYPTED PRIVATE KEY":
			return nil, errEncryptedKey
		default:
			continue
		}
		if err != nil {
			return nil, err
		}
		signer, ok := key.(crypto.Signer)
		if !ok || supported(signer.Public()) != nil {
			return nil, errors.New("keys are Ed25519, RSA or ECDSA")
		}
		return signer, nil
	}
	return nil, errors.New("it holds no PEM private key")
}

var errEncryptedKey = errors.New("it is encrypted; decrypt it first, with openssl pkey for example")

// sameKey tells whether two public keys are one.
func sameKey(a, b crypto.PublicKey) bool {
	k, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && k.Equal(b)
}

// describeKey names a key by its kind and the digest of its SubjectPublicKeyInfo.
func describeKey(key crypto.PublicKey) string {
	kind := "unknown"
	switch k := key.(type) {
	case ed25519.PublicKey:
		kind = "Ed25519"
	case *rsa.PublicKey:
		kind = fmt.Sprintf("RSA %d", k.N.BitLen())
	case *ecdsa.PublicKey:
		kind = "ECDSA " + k.Curve.Params().Name
	}
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return kind
	}
	sum := sha256.Sum256(der)
	return kind + " SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
}
