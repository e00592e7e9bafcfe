package bundle

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	_ "crypto/sha256" // the digests of digests
	_ "crypto/sha512"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
)

// Object identifiers of RFC 5652 and the algorithms it is used with.
var (
	oidData          = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 1}
	oidSignedData    = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 2}
	oidContentType   = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 3}
	oidMessageDigest = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 4}
)

// digests are those accepted, by object identifier.
var digests = map[string]crypto.Hash{
	"2.16.840.1.101.3.4.2.1": crypto.SHA256,
	"2.16.840.1.101.3.4.2.2": crypto.SHA384,
	"2.16.840.1.101.3.4.2.3": crypto.SHA512,
}

// scheme is a signature algorithm; hash is zero where the identifier leaves it to
// the digest algorithm.
type scheme struct {
	kind string
	hash crypto.Hash
}

const (
	kindRSA     = "RSA"
	kindECDSA   = "ECDSA"
	kindEd25519 = "Ed25519"
)

var schemes = map[string]scheme{
	"1.2.840.113549.1.1.1":  {kindRSA, 0},
	"1.2.840.113549.1.1.11": {kindRSA, crypto.SHA256},
	"1.2.840.113549.1.1.12": {kindRSA, crypto.SHA384},
	"1.2.840.113549.1.1.13": {kindRSA, crypto.SHA512},
	"1.2.840.10045.4.3.2":   {kindECDSA, crypto.SHA256},
	"1.2.840.10045.4.3.3":   {kindECDSA, crypto.SHA384},
	"1.2.840.10045.4.3.4":   {kindECDSA, crypto.SHA512},
	"1.3.101.112":           {kindEd25519, 0},
}

type rawContentInfo struct {
	Type    asn1.ObjectIdentifier
	Content asn1.RawValue `asn1:"explicit,optional,tag:0"`
}

type rawSignedData struct {
	Version          int
	DigestAlgorithms asn1.RawValue
	Content          rawContentInfo
	Certificates     asn1.RawValue   `asn1:"optional,tag:0"`
	CRLs             asn1.RawValue   `asn1:"optional,tag:1"`
	Signers          []rawSignerInfo `asn1:"set"`
}

type rawSignerInfo struct {
	Version            int
	ID                 asn1.RawValue
	DigestAlgorithm    pkix.AlgorithmIdentifier
	Attributes         asn1.RawValue `asn1:"optional,tag:0"`
	SignatureAlgorithm pkix.AlgorithmIdentifier
	Signature          []byte
	Unsigned           asn1.RawValue `asn1:"optional,tag:1"`
}

type rawIssuerAndSerial struct {
	Issuer asn1.RawValue
	Serial *big.Int
}

type rawAttribute struct {
	Type   asn1.ObjectIdentifier
	Values []asn1.RawValue `asn1:"set"`
}

// signedData is a detached PKCS#7 signature by one signer.
type signedData struct {
	signer       *x509.Certificate
	certificates []*x509.Certificate // all of them, signer included
	hash         crypto.Hash
	scheme       scheme
	attributes   []byte // as signed: the bytes that arrived, called a SET
	digest       []byte // of the content, as the attributes state it
	signature    []byte
}

// maxCertificates bounds the certificates of one signature.
const maxCertificates = 16

// parseSignedData reads the PKCS#7 of a block.
func parseSignedData(der []byte) (*signedData, error) {
	var info rawContentInfo
	if err := unmarshal(der, &info, "ContentInfo"); err != nil {
		return nil, err
	}
	if !info.Type.Equal(oidSignedData) {
		return nil, errors.New("its PKCS#7 is not SignedData")
	}
	var raw rawSignedData
	if err := unmarshal(info.Content.Bytes, &raw, "SignedData"); err != nil {
		return nil, err
	}
	if !raw.Content.Type.Equal(oidData) || len(raw.Content.Content.FullBytes) != 0 {
		return nil, errors.New("its PKCS#7 does not sign detached data")
	}
	if len(raw.Signers) != 1 {
		return nil, fmt.Errorf("its PKCS#7 has %d signers, not one", len(raw.Signers))
	}
	signer := raw.Signers[0]
	s := &signedData{signature: signer.Signature}
	var err error
	if s.certificates, err = parseCertificates(raw.Certificates.Bytes); err != nil {
		return nil, err
	}
	if s.signer = findSigner(s.certificates, signer.ID); s.signer == nil {
		return nil, errors.New("its PKCS#7 lacks the certificate of the signer")
	}
	if err := s.setAlgorithms(signer); err != nil {
		return nil, err
	}
	return s, s.setAttributes(signer.Attributes)
}

func unmarshal(der []byte, v any, what string) error {
	rest, err := asn1.Unmarshal(der, v)
	if err != nil {
		return fmt.Errorf("its PKCS#7 has no valid %s: %w", what, err)
	}
	if len(rest) != 0 {
		return fmt.Errorf("its PKCS#7 has bytes behind %s", what)
	}
	return nil
}

func parseCertificates(der []byte) ([]*x509.Certificate, error) {
	var list []*x509.Certificate
	for len(der) > 0 {
		if len(list) == maxCertificates {
			return nil, fmt.Errorf("its PKCS#7 has more than %d certificates", maxCertificates)
		}
		var raw asn1.RawValue
		rest, err := asn1.Unmarshal(der, &raw)
		if err != nil {
			return nil, fmt.Errorf("its PKCS#7 has an invalid certificate: %w", err)
		}
		cert, err := x509.ParseCertificate(raw.FullBytes)
		if err != nil {
			return nil, fmt.Errorf("its PKCS#7 has an invalid certificate: %w", err)
		}
		list, der = append(list, cert), rest
	}
	return list, nil
}

// findSigner looks a signer up by issuer and serial number, or by key identifier.
func findSigner(certs []*x509.Certificate, id asn1.RawValue) *x509.Certificate {
	var named rawIssuerAndSerial
	byName := id.Class == asn1.ClassUniversal && unmarshal(id.FullBytes, &named, "signer") == nil
	byKey := id.Class == asn1.ClassContextSpecific && id.Tag == 0 && len(id.Bytes) > 0
	for _, c := range certs {
		switch {
		case byName && bytes.Equal(c.RawIssuer, named.Issuer.FullBytes) && c.SerialNumber.Cmp(named.Serial) == 0:
			return c
		case byKey && bytes.Equal(c.SubjectKeyId, id.Bytes):
			return c
		}
	}
	return nil
}

func (s *signedData) setAlgorithms(signer rawSignerInfo) error {
	digest, algorithm := signer.DigestAlgorithm.Algorithm.String(), signer.SignatureAlgorithm.Algorithm.String()
	var ok bool
	if s.hash, ok = digests[digest]; !ok {
		return fmt.Errorf("its digest algorithm %s is not supported", digest)
	}
	if s.scheme, ok = schemes[algorithm]; !ok {
		return fmt.Errorf("its signature algorithm %s is not supported", algorithm)
	}
	if s.scheme.hash != 0 && s.scheme.hash != s.hash {
		return errors.New("its digest and signature algorithms differ")
	}
	return nil
}

// setAttributes requires the two attributes that tie the signature to the content.
// The bytes that were signed are kept as they are: a packer in use does not sort
// them as DER wants, and sorting them again would make its signatures invalid.
func (s *signedData) setAttributes(raw asn1.RawValue) error {
	if len(raw.FullBytes) == 0 {
		return errors.New("its PKCS#7 has no signed attributes")
	}
	s.attributes = bytes.Clone(raw.FullBytes)
	s.attributes[0] = asn1.TagSet | 0x20 // constructed
	var typed bool
	for der := raw.Bytes; len(der) > 0; {
		var a rawAttribute
		rest, err := asn1.Unmarshal(der, &a)
		if err != nil {
			return fmt.Errorf("its PKCS#7 has an invalid attribute: %w", err)
		}
		der = rest
		switch {
		case a.Type.Equal(oidContentType):
			var t asn1.ObjectIdentifier
			if typed || len(a.Values) != 1 || unmarshal(a.Values[0].FullBytes, &t, "content type") != nil || !t.Equal(oidData) {
				return errors.New("its content type attribute is wrong")
			}
			typed = true
		case a.Type.Equal(oidMessageDigest):
			if s.digest != nil || len(a.Values) != 1 || unmarshal(a.Values[0].FullBytes, &s.digest, "digest") != nil || len(s.digest) != s.hash.Size() {
				return errors.New("its message digest attribute is wrong")
			}
		}
	}
	if !typed || s.digest == nil {
		return errors.New("its PKCS#7 lacks the content type or the message digest")
	}
	return nil
}

// verify checks that the signer signed the attributes, and that they state the
// digest of the content. It says nothing about who the signer is.
func (s *signedData) verify(content []byte) error {
	if !bytes.Equal(sum(s.hash, content), s.digest) {
		return errors.New("it does not match the content of the bundle")
	}
	var valid bool
	switch key := s.signer.PublicKey.(type) {
	case *rsa.PublicKey:
		valid = s.scheme.kind == kindRSA && rsa.VerifyPKCS1v15(key, s.hash, sum(s.hash, s.attributes), s.signature) == nil
	case *ecdsa.PublicKey:
		valid = s.scheme.kind == kindECDSA && ecdsa.VerifyASN1(key, sum(s.hash, s.attributes), s.signature)
	case ed25519.PublicKey:
		valid = s.scheme.kind == kindEd25519 && ed25519.Verify(key, s.attributes, s.signature)
	}
	if !valid {
		return errors.New("it was not made with the key of its certificate")
	}
	return nil
}

func sum(h crypto.Hash, data []byte) []byte {
	d := h.New()
	d.Write(data)
	return d.Sum(nil)
}
