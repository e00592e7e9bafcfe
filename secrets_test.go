package mcpbroker

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMaskedCommand(t *testing.T) {
	for want, args := range map[string][]string{
		"npx":                                            nil,
		"npx -y server /data":                            {"-y", "server", "/data"},
		"npx --token ***":                                {"--token", "s3cret"},
		"npx --token ${TOKEN}":                           {"--token", "${TOKEN}"},
		"npx --token=***":                                {"--token=s3cret"},
		"npx --token=${TOKEN}":                           {"--token=${TOKEN}"},
		"npx API_KEY=*** x":                              {"API_KEY=s3cret", "x"},
		"npx --password *** --verbose":                   {"--password", "s3cret", "--verbose"},
		"npx token-server --port 1":                      {"token-server", "--port", "1"},
		"npx --api-key *** --port=1":                     {"--api-key", "s3cret", "--port=1"},
		"npx -H Authorization: ***":                      {"-H", "Authorization: Bearer s3cret"},
		"npx -H=X-Api-Key:***":                           {"-H=X-Api-Key:s3cret"},
		"npx -H Authorization:${A}":                      {"-H", "Authorization:${A}"},
		"npx --db postgres://u:***@h/d":                  {"--db", "postgres://u:s3cret@h/d"},
		"npx http://h/?token=***":                        {"http://h/?token=s3cret"},
		"npx --token *** -v":                             {"--token", "--verbose", "-v"},
		"npx https://auth.h/mcp":                         {"https://auth.h/mcp"},
		"npx --key *** --private-key=*** --verbose":      {"--key", "abcdef", "--private-key=abcdef", "--verbose"},
		"npx -key ${KEY} --pass ***":                     {"-key", "${KEY}", "--pass", "s3cret"},
		"npx -H X-Key: *** -H X-Any: Bearer ***":         {"-H", "X-Key: abc", "-H", "X-Any: Bearer abc"},
		"npx -H Authorization: Bearer ${TOKEN}":          {"-H", "Authorization: Bearer ${TOKEN}"},
		"npx -H Authorization: *** --monkey=1":           {"-H", "Authorization: abc ${TOKEN}", "--monkey=1"},
		"npx --token ${X:-***} ${TOKEN:-***} ${HOST:-h}": {"--token", "${X:-hunter2hunter2}", "${TOKEN:-hunter2}", "${HOST:-h}"},
		"npx mysql://root:***@h postgres://u:***@h/db":   {"mysql://root:s3cr3t/x@h", "postgres://u:p@ss/w@h/db"},
		"npx https://h:8080/@scope/x https://***@h/":     {"https://h:8080/@scope/x", "https://0123456789abcdef@h/"},
		"npx postgres://u:${PASS}@h/d ***":               {"postgres://u:${PASS}@h/d", "ghp_0123456789abcdef"},
		"npx sk-ish *** author=me":                       {"sk-ish", "sk-proj-0123456789", "author=me"},
	} {
		if got := maskedCommand("npx", args); got != want {
			t.Errorf("%q is shown as %q, want %q", strings.Join(args, " "), got, want)
		}
	}
}

// A name, a URL or the value itself tells a secret.
func TestSecretsIn(t *testing.T) {
	for _, name := range []string{
		"TOKEN", "githubToken", "API_KEY", "STRIPE_KEY", "KEY", "SSH_PRIVATE_KEY", "ENCRYPTION_KEY", "GITHUB_PAT", "SENTRY_DSN", "SMTP_PASS",
		"PGPASSWORD", "MYSQL_PWD", "AUTHORIZATION", "BASIC_AUTH", "COOKIE", "client-secret", "AWS_ACCESS_KEY_ID",
	} {
		if diff := cmp.Diff([]string{"some value"}, secretsIn(name, "some value")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for _, name := range []string{"PWD", "OLDPWD", "SSH_AUTH_SOCK", "XAUTHORITY", "GIT_AUTHOR_NAME", "KEYBOARD", "MONKEY", "PATH", "SITE", "COMPASS"} {
		if got := secretsIn(name, "/some/value"); got != nil {
			t.Errorf("%s: %q", name, got)
		}
	}
	for value, want := range map[string][]string{
		"postgres://u:p%40ss@h/db":       {"postgres://u:p%40ss@h/db", "p%40ss", "p@ss"},
		"https://h:8080/@scope/pkg":      nil,
		"user ghp_0123456789abcdef here": {"ghp_0123456789abcdef"},
	} {
		if diff := cmp.Diff(want, secretsIn("ANY", value)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", value, diff)
		}
	}
}

func TestMaskedURL(t *testing.T) {
	for raw, want := range map[string]string{
		"https://h/mcp":               "https://h/mcp",
		"https://u:p@h/mcp":           "https://h/mcp",
		"https://h/mcp?key=s3cret#f":  "https://h/mcp?***",
		"https://${HOST}:1/${PATH}/x": "https://${HOST}:1/${PATH}/x",
		"https://h:port/mcp?k=s3cret": "https://h:port/mcp?***",
		"https://u:s3cret@h:port/mcp": "https://h:port/mcp",
		"wss://h/a%2Fb":               "wss://h/a%2Fb",
	} {
		if got := maskedURL(raw); got != want {
			t.Errorf("%s is shown as %s, want %s", raw, got, want)
		}
	}
}
