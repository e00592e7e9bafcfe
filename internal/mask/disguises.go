package mask

import (
	"encoding/base64"
	"net/url"
	"strings"

	"mcpbroker/actors/wire"
)

// likeJavaScript turns what url.QueryEscape makes into what encodeURIComponent does.
var likeJavaScript = strings.NewReplacer("+", "%20", "%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*")

// disguises are the forms that a secret has inside of other texts, as far as they
// differ from it.
func disguises(secret string) []string {
	quoted := wire.AppendString(nil, secret)
	inQuery := url.QueryEscape(secret)
	all := append([]string{
		string(quoted[1 : len(quoted)-1]),
		inQuery, likeJavaScript.Replace(inQuery), url.PathEscape(secret),
		strings.TrimPrefix(url.UserPassword("", secret).String(), ":"),
	}, inBase64(secret)...)
	var others []string
	for _, s := range all {
		if s != secret {
			others = append(others, s)
		}
	}
	return others
}

// shortCode is the length from which base64 of a secret is told from a word.
const shortCode = 8

// inBase64 are the characters that a secret alone decides, wherever in an encoded text
// it stands: behind 0, 1 or 2 bytes of a group of three.
func inBase64(secret string) (codes []string) {
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for ahead := range 3 {
			code := encoding.EncodeToString([]byte(strings.Repeat("\x00", ahead) + secret))
			from := (ahead*8 + 5) / 6
			to := (ahead + len(secret)) * 8 / 6
			if to-from >= shortCode {
				codes = append(codes, code[from:to])
			}
		}
	}
	return codes
}
