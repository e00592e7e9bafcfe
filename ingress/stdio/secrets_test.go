package stdio

import (
	"errors"
	"strings"
	"testing"

	"mcpbroker/actors/wire"
)

const pem = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\r\nBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n-----END PRIVATE KEY-----\n"

// Security: what a child was told in confidence is not passed on to its callers.
func TestMask(t *testing.T) {
	mask := newMask([]string{"hunter2hunter2", "hunter2", "12345", "-1.5", "true", "abc", "x=1", "", "tok-äöü-9", "p4ss", "name", `a"b\c`, pem})
	for in, want := range map[string]string{
		"401 with key hunter2hunter2!":       "401 with key ***!",
		"hunter2 and hunter2hunter2":         "*** and ***",
		"port 12345 is in use, true":         "port 12345 is in use, true",
		"-1.5 abc x=1 name":                  "-1.5 abc x=1 name",
		"p4ss":                               "***",
		"tok-äöü-9|tok-äöü-9":                "***|***",
		`{"key":"a\"b\\c"} a"b\c`:            `{"key":"***"} ***`,
		pem:                                  "***",
		"  BKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj": "  ***",
		`"MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\r\nBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n"`: `"***\r\n***\n"`,
		"": "",
	} {
		equal(t, in, mask.text(in), want)
	}
	equal(t, "without secrets", newMask(nil).text("as it is"), "as it is")
}

// A secret is not shown in part because a text is cut.
func TestMaskCutText(t *testing.T) {
	secret := "ghp_" + strings.Repeat("0123456789", 4)
	mask := newMask([]string{secret, "other-secret"})
	for n := range 2*maxLineBytes + 2*len(secret) {
		text := strings.Repeat("x", n) + secret + secret
		text += strings.Repeat("y", 3000)
		if got := string(mask.beginning([]byte(text))); strings.Contains(got, "g") || len(got) < maxLineBytes {
			t.Fatalf("behind %d bytes: %s", n, got)
		}
	}
	equal(t, "whole", mask.shown([]byte("whole ghp_"), false), "whole ghp_")
	equal(t, "cut", mask.shown([]byte("cut ghp_"), true), "cut ")
}

// An error keeps what clients are told apart from what operators are.
func TestMaskedError(t *testing.T) {
	mask := newMask([]string{"s3cret"})
	plain := errors.New("as it is")
	equal(t, "without a secret", mask.maskedError(plain) == plain, true)
	equal(t, "none", mask.maskedError(nil), error(nil))
	err := mask.maskedError(confidential(notFound, "command %q was not found in PATH (/opt/bin)", "/opt/s3cret"))
	equal(t, "for operators", err.Error(), `command "/opt/***" was not found in PATH (/opt/bin)`)
	equal(t, "for clients", wire.Public(err), notFound)
}
