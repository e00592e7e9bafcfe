package bundle

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha512"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Signatures of OpenSSL over packed.mcpb.
func TestCMS(t *testing.T) {
	packed := fixture(t, "packed.mcpb")
	tests := []struct{ file, want string }{
		{"rsa", ""},
		{"ecdsa", ""}, // SHA-384, signer by key identifier
		{"other", "it does not match the content of the bundle"},
		{"pss", "its signature algorithm 1.2.840.113549.1.1.10 is not supported"},
		{"sha1", "its digest algorithm 1.3.14.3.2.26 is not supported"},
		{"noattr", "its PKCS#7 has no signed attributes"},
		{"attached", "its PKCS#7 does not sign detached data"},
		{"nocerts", "its PKCS#7 lacks the certificate of the signer"},
		{"two", "its PKCS#7 has 2 signers, not one"},
	}
	for _, tt := range tests {
		s, err := parseSignedData(fixture(t, "cms/"+tt.file+".p7"))
		if err == nil {
			err = s.verify(packed)
		}
		if got := errorText(err); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.file, got, tt.want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

type testAttribute struct {
	kind   asn1.ObjectIdentifier
	values []any
}

// hostile is a signature that a test makes, right unless it says otherwise.
type hostile struct {
	content    string
	attributes []testAttribute
	digest     string // object identifier
	algorithm  string
	signature  func(signed []byte) []byte
}

const (
	sha512OID  = "2.16.840.1.101.3.4.2.3"
	ed25519OID = "1.3.101.112"
)

func oid(t *testing.T, text string) asn1.ObjectIdentifier {
	t.Helper()
	var id asn1.ObjectIdentifier
	for arc := range strings.SplitSeq(text, ".") {
		n, err := strconv.Atoi(arc)
		if err != nil {
			t.Fatal(err)
		}
		id = append(id, n)
	}
	return id
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	der, err := asn1.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func (h hostile) build(t *testing.T) []byte {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "E"}, NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, signer.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(cert)
	if err != nil {
		t.Fatal(err)
	}
	wrap := func(class, tag int, parts ...[]byte) []byte {
		return marshal(t, asn1.RawValue{Class: class, Tag: tag, IsCompound: true, Bytes: bytes.Join(parts, nil)})
	}
	sequence := func(parts ...[]byte) []byte { return wrap(asn1.ClassUniversal, asn1.TagSequence, parts...) }
	set := func(parts ...[]byte) []byte { return wrap(asn1.ClassUniversal, asn1.TagSet, parts...) }
	tagged := func(parts ...[]byte) []byte { return wrap(asn1.ClassContextSpecific, 0, parts...) }

	var attributes []byte
	for _, a := range h.attributes {
		var values []byte
		for _, v := range a.values {
			values = append(values, marshal(t, v)...)
		}
		attributes = append(attributes, sequence(marshal(t, a.kind), set(values))...)
	}
	digest := sequence(marshal(t, oid(t, h.digest)))
	info := sequence(marshal(t, 1), sequence(parsed.RawIssuer, marshal(t, big.NewInt(1))), digest, tagged(attributes),
		sequence(marshal(t, oid(t, h.algorithm))), marshal(t, h.signature(set(attributes))))
	data := sequence(marshal(t, 1), set(digest), sequence(marshal(t, oidData)), tagged(cert), set(info))
	return sequence(marshal(t, oidSignedData), tagged(data))
}

// Ed25519 (RFC 8419), and what makes a signature mean nothing.
func TestSignedAttributes(t *testing.T) {
	digest := sha512.Sum512([]byte("content"))
	contentType := testAttribute{oidContentType, []any{oidData}}
	messageDigest := testAttribute{oidMessageDigest, []any{digest[:]}}
	other := testAttribute{asn1.ObjectIdentifier{1, 2, 3}, []any{1}}
	sign := func(signed []byte) []byte { return ed25519.Sign(signer, signed) }
	tests := []struct {
		name   string
		change func(*hostile)
		want   string
	}{
		{"sound", func(*hostile) {}, ""},
		{"other attributes", func(h *hostile) { h.attributes = append(h.attributes, other, other) }, ""},
		{"other order", func(h *hostile) { h.attributes = []testAttribute{messageDigest, other, contentType} }, ""},
		{"no digest", func(h *hostile) { h.attributes = h.attributes[:1] }, "its PKCS#7 lacks the content type or the message digest"},
		{"no content type", func(h *hostile) { h.attributes = h.attributes[1:] }, "its PKCS#7 lacks the content type or the message digest"},
		{"no attributes", func(h *hostile) { h.attributes = nil }, "its PKCS#7 lacks the content type or the message digest"},
		{"two digests", func(h *hostile) { h.attributes = append(h.attributes, messageDigest) }, "its message digest attribute is wrong"},
		{"two values", func(h *hostile) { h.attributes[1].values = []any{digest[:], digest[:]} }, "its message digest attribute is wrong"},
		{"no values", func(h *hostile) { h.attributes[1].values = nil }, "its message digest attribute is wrong"},
		{"short digest", func(h *hostile) { h.attributes[1].values = []any{digest[:32]} }, "its message digest attribute is wrong"},
		{"empty digest", func(h *hostile) { h.attributes[1].values = []any{[]byte{}} }, "its message digest attribute is wrong"},
		{"digest of another type", func(h *hostile) { h.attributes[1].values = []any{1} }, "its message digest attribute is wrong"},
		{"two content types", func(h *hostile) { h.attributes = append(h.attributes, contentType) }, "its content type attribute is wrong"},
		{"another content type", func(h *hostile) { h.attributes[0].values = []any{oidSignedData} }, "its content type attribute is wrong"},
		{"other content", func(h *hostile) { h.content = "changed" }, "it does not match the content of the bundle"},
		{"other algorithm", func(h *hostile) { h.algorithm = "1.2.840.113549.1.1.13" }, "it was not made with the key of its certificate"},
		{"algorithms differ", func(h *hostile) { h.algorithm = "1.2.840.113549.1.1.11" }, "its digest and signature algorithms differ"},
		{"no signature", func(h *hostile) { h.signature = func([]byte) []byte { return nil } }, "it was not made with the key of its certificate"},
		{"tag as it arrived is signed", func(h *hostile) {
			h.signature = func(signed []byte) []byte { return sign(append([]byte{0xa0}, signed[1:]...)) }
		}, "it was not made with the key of its certificate"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := hostile{"content", []testAttribute{contentType, messageDigest}, sha512OID, ed25519OID, sign}
			h.attributes[0].values, h.attributes[1].values = []any{oidData}, []any{digest[:]}
			tt.change(&h)
			s, err := parseSignedData(h.build(t))
			if err == nil {
				err = s.verify([]byte(h.content))
			}
			if got := errorText(err); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestMalformedPKCS7(t *testing.T) {
	sound := fixture(t, "cms/rsa.p7")
	for _, tt := range []struct {
		name string
		der  []byte
		want string
	}{
		{"empty", nil, "its PKCS#7 has no valid ContentInfo: "},
		{"not DER", []byte("PKCS#7"), "its PKCS#7 has no valid ContentInfo: "},
		{"cut", sound[:len(sound)-1], "its PKCS#7 has no valid ContentInfo: "},
		{"bytes behind", append(sound[:len(sound):len(sound)], 0), "its PKCS#7 has bytes behind ContentInfo"},
		{"another type", marshal(t, rawContentInfo{Type: oidData}), "its PKCS#7 is not SignedData"},
		{"nothing inside", marshal(t, rawContentInfo{Type: oidSignedData}), "its PKCS#7 has no valid SignedData: "},
	} {
		if _, err := parseSignedData(tt.der); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
	// No prefix panics or is accepted.
	for i := range sound {
		if _, err := parseSignedData(sound[:i]); err == nil {
			t.Errorf("the first %d bytes are accepted", i)
		}
	}
}

// Every signature that a supported key makes is one that the same key verifies.
func TestSignVerifies(t *testing.T) {
	for _, key := range []crypto.Signer{signer, testECDSA(t), testRSA(t)} {
		sig, err := sign(key, []byte("content"))
		if err != nil {
			t.Fatal(err)
		}
		public := trust{key: key.Public()}
		if !public.verifies([]byte("content"), sig) || public.verifies([]byte("contend"), sig) {
			t.Errorf("%T: the signature does not fit", key)
		}
	}
}
