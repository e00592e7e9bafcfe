// Package mask takes secrets out of texts that others get to see.
package mask

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strings"

	"mcpbroker/actors/wire"
)

// masked stands where a secret was. It is shorter than every secret.
const masked = "***"

// Lengths from which a value is taken for a secret: taking a shorter one out of a text
// would take out words. One of letters or digits alone has to be longer, and so has one
// line of several.
const (
	shortSecret = 4
	shortWord   = 6
	shortLine   = 8
)

var (
	plainNumber = regexp.MustCompile(`^[+-]?[0-9]+(?:\.[0-9]+)?$`)
	plainWord   = regexp.MustCompile(`^\pL+$`)
)

// Mask takes secrets out of what somebody says who was told them: as they are, and as
// they look in JSON, in a URL and in base64.
type Mask struct {
	secrets []string // longest first, so that one within another leaves nothing behind
	all     *strings.Replacer
}

// New returns a mask of these secrets. What is too short for one, and a short word or
// number, stays in texts.
func New(secrets []string) *Mask {
	m := &Mask{}
	for _, s := range secrets {
		m.add(s, shortSecret)
		lines := strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' })
		for _, line := range lines { // whoever prints it prints one at a time
			if len(lines) > 1 {
				m.add(strings.TrimSpace(line), shortLine)
			}
		}
	}
	slices.SortFunc(m.secrets, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	m.secrets = slices.Compact(m.secrets)
	var pairs []string
	for _, s := range m.secrets {
		pairs = append(pairs, s, masked)
	}
	m.all = strings.NewReplacer(pairs...)
	return m
}

// add adds a secret and its disguises.
func (m *Mask) add(secret string, short int) {
	if len(secret) < short || len(secret) < shortWord && (plainNumber.MatchString(secret) || plainWord.MatchString(secret)) {
		return
	}
	m.secrets = append(append(m.secrets, secret), disguises(secret)...)
}

// Text is a text without the secrets in it.
func (m *Mask) Text(text string) string { return m.all.Replace(text) }

// longest is the length of the longest secret.
func (m *Mask) longest() int {
	if len(m.secrets) == 0 {
		return 0
	}
	return len(m.secrets[0])
}

// Window is how much of a text to keep of which most bytes are to be shown: a secret
// that begins among them is there as a whole.
func (m *Mask) Window(most int) int { return 2*most + m.longest() }

// Shown is a text without the secrets in it. Of a secret at the end of one that was cut
// there may be a part only, which goes as well.
func (m *Mask) Shown(kept []byte, cut bool) string {
	text := string(kept)
	if !cut {
		return m.Text(text)
	}
	end := len(text)
	for _, s := range m.secrets {
		for n := min(len(s)-1, len(text)); n > 0; n-- {
			if strings.HasSuffix(text, s[:n]) {
				end = min(end, len(text)-n)
				break
			}
		}
	}
	return m.Text(text[:end])
}

// Beginning is as much of a text as is ever shown, without the secrets in it.
func (m *Mask) Beginning(text []byte) []byte {
	kept := text[:min(len(text), m.Window(len(wire.Preview(text))))]
	return wire.Preview([]byte(m.Shown(kept, len(kept) < len(text))))
}

// Error is an error without the secrets in it; nil stays nil.
func (m *Mask) Error(err error) error {
	if err == nil || m.Text(err.Error()) == err.Error() {
		return err
	}
	return &wire.Confidential{Err: errors.New(m.Text(err.Error())), Public: m.Text(wire.Public(err))}
}
