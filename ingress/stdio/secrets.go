package stdio

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
// would take out words. One of letters alone has to be longer, and so has one line of
// several.
const (
	shortSecret = 4
	shortWord   = 6
	shortLine   = 8
)

var (
	plainNumber = regexp.MustCompile(`^[+-]?[0-9]+(?:\.[0-9]+)?$`)
	plainWord   = regexp.MustCompile(`^\pL+$`)
)

// mask takes the secrets a child was given out of what it says.
type mask struct {
	secrets []string // longest first, so that one within another leaves nothing behind
	all     *strings.Replacer
}

func newMask(secrets []string) *mask {
	m := &mask{}
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

// add adds a secret, and what it looks like in JSON.
func (m *mask) add(secret string, short int) {
	if len(secret) < short || plainNumber.MatchString(secret) || len(secret) < shortWord && plainWord.MatchString(secret) {
		return
	}
	quoted := wire.AppendString(nil, secret)
	m.secrets = append(m.secrets, secret, string(quoted[1:len(quoted)-1]))
}

// text is a text without the secrets in it.
func (m *mask) text(text string) string { return m.all.Replace(text) }

// longest is the length of the longest secret.
func (m *mask) longest() int {
	if len(m.secrets) == 0 {
		return 0
	}
	return len(m.secrets[0])
}

// window is how much of a text to keep of which most bytes are to be shown: a secret
// that begins among them is there as a whole.
func (m *mask) window(most int) int { return 2*most + m.longest() }

// shown is a text without the secrets in it. Of a secret at the end of one that was cut
// there may be a part only, which goes as well.
func (m *mask) shown(kept []byte, cut bool) string {
	text := string(kept)
	if !cut {
		return m.text(text)
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
	return m.text(text[:end])
}

// beginning is as much of a text as is ever shown, without the secrets in it.
func (m *mask) beginning(text []byte) []byte {
	kept := text[:min(len(text), m.window(len(wire.Preview(text))))]
	return wire.Preview([]byte(m.shown(kept, len(kept) < len(text))))
}

// maskedError is an error without the secrets in it.
func (m *mask) maskedError(err error) error {
	if err == nil || m.text(err.Error()) == err.Error() {
		return err
	}
	return &wire.Confidential{Err: errors.New(m.text(err.Error())), Public: m.text(wire.Public(err))}
}
