package config

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// spec 01 5.5: lists are compared verbatim.
func TestOriginList(t *testing.T) {
	o := Origins{List: []string{"https://app.example", "null"}}
	for origin, want := range map[string]bool{
		"https://app.example": true, "null": true, "https://app.example/": false,
		"https://app.example:443": false, "HTTPS://app.example": false, "": false,
	} {
		if got := o.Allow(origin); got != want {
			t.Errorf("Allow(%q) = %v", origin, got)
		}
	}
	if (Origins{}).Allow("https://app.example") || !(Origins{}).IsZero() || !(Origins{List: []string{}}).IsZero() {
		t.Error("nothing configured must allow nothing")
	}
}

// spec 03 5.3: searched, not anchored, with the flags i m s u g y.
func TestOriginPattern(t *testing.T) {
	tests := []struct {
		pattern, flags, origin string
		want                   bool
	}{
		{`app\.example`, "", "https://app.example.evil", true},
		{`^https://app\.example$`, "", "https://app.example", true},
		{`^https://app\.example$`, "", "https://APP.example", false},
		{`^https://app\.example$`, "iug", "https://APP.example", true},
		{`app`, "y", "https://app", false},
		{`https|http`, "y", "http://app", true},
		{`x|http`, "y", "https://x", true},
		{`ttp|x`, "y", "http://x", false},
		{`^b`, "", "a\nb", false},
		{`^b`, "m", "a\nb", true},
		{`a.b`, "", "a\nb", false},
		{`a.b`, "s", "a\nb", true},
	}
	for _, tt := range tests {
		o, err := NewOriginPattern(tt.pattern, tt.flags)
		if err != nil {
			t.Errorf("%q: %v", tt.pattern, err)
			continue
		}
		if got := o.Allow(tt.origin); got != tt.want {
			t.Errorf("/%s/%s on %q = %v", tt.pattern, tt.flags, tt.origin, got)
		}
		if o.IsZero() {
			t.Errorf("/%s/ is zero", tt.pattern)
		}
	}
}

func TestOriginPatternRefused(t *testing.T) {
	tests := []struct{ pattern, flags, want string }{
		{"", "", "must not be empty"},
		{`a)|(b`, "y", "is not an RE2 expression: unexpected ): `a)|(b`"},
		{`(a)\1`, "", "is not an RE2 expression: invalid escape sequence: `\\1`"},
		{`a(?!b)`, "", "is not an RE2 expression: invalid or unsupported Perl syntax: `(?!`"},
		{`a`, "v", `has the unknown flag 'v'; known are i, m, s, u, g and y`},
		{`a`, "gig", `has the flag 'g' twice`},
	}
	for _, tt := range tests {
		if _, err := NewOriginPattern(tt.pattern, tt.flags); err == nil || err.Error() != tt.want {
			t.Errorf("/%s/%s: %v, want %s", tt.pattern, tt.flags, err, tt.want)
		}
	}
}

func TestOriginsDescribed(t *testing.T) {
	pattern, err := NewOriginPattern("a<b", "i")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		o          Origins
		text, json string
	}{
		{Origins{}, "", `[]`},
		{Origins{List: []string{"https://a", "https://b"}}, "https://a, https://b", `["https://a","https://b"]`},
		{pattern, "/a<b/i", `{"pattern":"a\u003cb","flags":"i"}`},
	}
	for _, tt := range tests {
		data, err := json.Marshal(tt.o)
		if err != nil || string(data) != tt.json || tt.o.String() != tt.text {
			t.Errorf("%+v: %s %v, %s", tt.o, data, err, tt.o)
		}
	}
}

func TestOriginWarnings(t *testing.T) {
	cfg, err := Parse("x.toml", []byte(`allowedOrigins = ["*", "https://ok.example:8443", "https://a/", "null", "a.example"]`))
	if err != nil {
		t.Fatal(err)
	}
	const why = " matches no browser: origins are compared verbatim, as scheme://host[:port] without a path or wildcard"
	want := []string{
		`[mcp-broker] allowedOrigins entry "*"` + why,
		`[mcp-broker] allowedOrigins entry "https://a/"` + why,
		`[mcp-broker] allowedOrigins entry "a.example"` + why,
	}
	if diff := cmp.Diff(want, cfg.Warnings); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
