package mask

import (
	"encoding/base64"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"mcpbroker/actors/wire"
)

const pem = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\r\nBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n-----END PRIVATE KEY-----\n"

// maxShown is how much of a text Beginning shows.
const maxShown = 500

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateErrors()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// Security: what a child was told in confidence is not passed on to its callers.
func TestMask(t *testing.T) {
	mask := New([]string{"hunter2hunter2", "hunter2", "12345", "123456", "-1.5", "true", "abc", "x=1", "", "tok-äöü-9", "p4ss", "name", `a"b\c`, pem})
	for in, want := range map[string]string{
		"401 with key hunter2hunter2!":       "401 with key ***!",
		"hunter2 and hunter2hunter2":         "*** and ***",
		"port 12345 is in use, true":         "port 12345 is in use, true",
		"-1.5 abc x=1 name":                  "-1.5 abc x=1 name",
		"code 123456":                        "code ***",
		"p4ss":                               "***",
		"tok-äöü-9|tok-äöü-9":                "***|***",
		`{"key":"a\"b\\c"} a"b\c`:            `{"key":"***"} ***`,
		pem:                                  "***",
		"  BKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj": "  ***",
		`"MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\r\nBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n"`: `"***\r\n***\n"`,
		"": "",
	} {
		equal(t, in, mask.Text(in), want)
	}
	equal(t, "without secrets", New(nil).Text("as it is"), "as it is")
}

// Security: a secret is one in other writing, too, wherever in an encoded text it is.
func TestDisguises(t *testing.T) {
	const secret = "p4ss w/rd+(é)=1"
	mask := New([]string{secret})
	texts := map[string]string{
		"query": url.QueryEscape(secret), "path": url.PathEscape(secret), "JavaScript": "p4ss%20w%2Frd%2B(%C3%A9)%3D1",
		"query of URL": (&url.URL{Scheme: "https", Host: "h", RawQuery: url.Values{"key": {secret}}.Encode()}).String(),
		"password":     (&url.URL{Scheme: "https", Host: "h", User: url.UserPassword("u", secret)}).String(),
	}
	for name, text := range texts {
		if got := mask.Text(text); strings.Contains(got, "p4ss") || strings.Contains(got, "rd") {
			t.Errorf("%s: %s", name, got)
		}
	}
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding} {
		for _, user := range []string{"", "u", "us", "use:", "user:"} {
			for _, behind := range []string{"", "\n", "  "} {
				code := encoding.EncodeToString([]byte(user + secret + behind))
				shown, ok := strings.CutSuffix(mask.Text("Basic "+code), "=")
				for ; ok; shown, ok = strings.CutSuffix(shown, "=") {
				}
				ends := strings.Split(strings.TrimPrefix(shown, "Basic "), masked)
				if len(ends) != 2 || len(ends[0]) > len(user)*8/6+1 || len(ends[1]) > 5 {
					t.Errorf("%q between %q and %q: %s", code, user, behind, shown)
				}
			}
		}
	}
	equal(t, "of a short one nothing is long enough", inBase64("p4ss"), []string(nil))
}

// A secret is not shown in part because a text is cut.
func TestMaskCutText(t *testing.T) {
	secret := "ghp_" + strings.Repeat("0123456789", 4)
	mask := New([]string{secret, "other-secret"})
	for n := range 2*maxShown + 2*len(secret) {
		text := strings.Repeat("x", n) + secret + secret
		text += strings.Repeat("y", 3000)
		if got := string(mask.Beginning([]byte(text))); strings.Contains(got, "g") || len(got) < maxShown {
			t.Fatalf("behind %d bytes: %s", n, got)
		}
	}
	equal(t, "whole", mask.Shown([]byte("whole ghp_"), false), "whole ghp_")
	equal(t, "cut", mask.Shown([]byte("cut ghp_"), true), "cut ")
}

// An error keeps what clients are told apart from what operators are.
func TestError(t *testing.T) {
	mask := New([]string{"s3cret"})
	plain := errors.New("as it is")
	equal(t, "without a secret", mask.Error(plain) == plain, true)
	equal(t, "none", mask.Error(nil), error(nil))
	err := mask.Error(&wire.Confidential{Err: errors.New(`command "/opt/s3cret" was not found in PATH (/opt/bin)`), Public: "it was not found"})
	equal(t, "for operators", err.Error(), `command "/opt/***" was not found in PATH (/opt/bin)`)
	equal(t, "for clients", wire.Public(err), "it was not found")
}
