package stdio

import (
	"cmp"
	"slices"
	"strings"
)

// shortSecret is the length under which a value is no secret: taking it out of a
// text would take out words.
const shortSecret = 6

// masking takes the secrets a child was given out of what it says. Longer ones go
// first, so that one within another leaves nothing behind.
func masking(secrets []string) func(string) string {
	longest := slices.Clone(secrets)
	slices.SortFunc(longest, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	var pairs []string
	for _, s := range longest {
		if len(s) >= shortSecret {
			pairs = append(pairs, s, "***")
		}
	}
	if len(pairs) == 0 {
		return func(text string) string { return text }
	}
	return strings.NewReplacer(pairs...).Replace
}
