package ingress

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

var defaultPaths = Paths{Provider: "/provider", Providers: "/providers"}

// refused and hinted stand for texts that are compared by their tokens.
const (
	refused = "refused"
	hinted  = "hinted"
)

// TestClassify pins every row of the tables of spec 01 1.1.
func TestClassify(t *testing.T) {
	dedicated := func(slot string) Upgrade { return Upgrade{Role: DedicatedProvider, Slot: slot} }
	client := func(slot string) Upgrade { return Upgrade{Role: Client, Slot: slot} }
	mistyped := func(slot string) Upgrade { return Upgrade{Role: Client, Slot: slot, Hint: hinted} }
	tests := []struct {
		target string
		want   Upgrade
	}{
		{"/provider", Upgrade{Refusal: refused}},
		{"/provider/", Upgrade{Refusal: refused}},
		{"/provider/?x=1", Upgrade{Refusal: refused}},
		{"/provider?x=1", mistyped("provider")},
		{"/provider/a/b", Upgrade{Refusal: refused}},
		{"/provider/a/", Upgrade{Refusal: refused}},
		{"/provider//a", Upgrade{Refusal: refused}},
		{"/provider/a%2Fb", dedicated("a/b")},
		{"/provider/%2Fsite-a%2Fline-3", dedicated("/site-a/line-3")},
		{"/provider/%zz", dedicated("%zz")},
		{"/provider/a%2Fb%zz", dedicated("a%2Fb%zz")},
		{"/provider/%ff", dedicated("%ff")},
		{"/provider/%C3%A9", dedicated("é")},
		{"/provider/a+b", dedicated("a+b")},
		{"/provider/a?token=1", dedicated("a")},
		{"/provider/a?b/c", dedicated("a")},
		{"/provider/providers", dedicated("providers")},
		{"/provider/Case", dedicated("Case")},
		{"/providers", Upgrade{Role: MultiplexedProvider}},
		{"/providers?x=1", Upgrade{Role: MultiplexedProvider}},
		{"/providers/", mistyped("providers/")},
		{"/providers/foo", mistyped("providers/foo")},
		{"/providersfoo", client("providersfoo")},
		{"/providerfoo/bar", client("providerfoo/bar")},
		{"/Provider/x", client("Provider/x")},
		{"/", client("")},
		{"/?x=1", client("")},
		{"/x", client("x")},
		{"/x?token=a/b", client("x")},
		{"/a/b/c", client("a/b/c")},
		{"/a%2Fb/c", client("a/b/c")},
		{"//x", client("/x")},
		{"/%zz", client("%zz")},
		{"/%zz%41", client("%zz%41")},
		{"/_all", client("_all")},
		{"/%70rovider/x", mistyped("provider/x")},
	}
	for _, test := range tests {
		got := Classify(test.target, defaultPaths)
		if got.Refusal != "" {
			got.Refusal = refused
		}
		if got.Hint != "" {
			got.Hint = hinted
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("Classify(%q) (-want +got):\n%s", test.target, diff)
		}
	}
}

// TestClassifyCustomPaths: values are compared as given, and the default paths
// mean nothing once they are changed (spec 01 1.6, regression 21).
func TestClassifyCustomPaths(t *testing.T) {
	paths := Paths{Provider: "/in/one", Providers: "/in/many"}
	tests := []struct {
		target string
		want   Upgrade
	}{
		{"/in/one/a%2Fb", Upgrade{Role: DedicatedProvider, Slot: "a/b"}},
		{"/in/many", Upgrade{Role: MultiplexedProvider}},
		{"/provider/a", Upgrade{Role: Client, Slot: "provider/a"}},
		{"/providers", Upgrade{Role: Client, Slot: "providers"}},
		{"/in", Upgrade{Role: Client, Slot: "in"}},
		{"/in/one?x", Upgrade{Role: Client, Slot: "in/one", Hint: hinted}},
		{"/in/many/a", Upgrade{Role: Client, Slot: "in/many/a", Hint: hinted}},
	}
	for _, test := range tests {
		got := Classify(test.target, paths)
		if got.Hint != "" {
			got.Hint = hinted
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("Classify(%q) (-want +got):\n%s", test.target, diff)
		}
	}
	for _, target := range []string{"/in/one", "/in/one/", "/in/one/a/b"} {
		if got := Classify(target, paths); got.Refusal == "" || strings.Contains(got.Refusal, "/provider") {
			t.Errorf("Classify(%q) refuses with %q, want the effective paths", target, got.Refusal)
		}
	}
	// A path without a leading slash never matches.
	if got := Classify("/provider/a", Paths{Provider: "provider", Providers: "providers"}); got.Role != Client {
		t.Errorf("a prefix without a slash matched: %+v", got)
	}
}

// TestRefusalTokens pins what the body of a 400 must name (spec 01 1.2).
func TestRefusalTokens(t *testing.T) {
	tests := []struct {
		target string
		tokens []string
	}{
		{"/provider", []string{`"/provider"`, "/provider/<name>", "/providers", "prefix", "not an endpoint"}},
		{"/provider/", []string{`"/provider/"`, "/provider/<name>", "empty slot name"}},
		{"/provider/?x=1", []string{`"/provider/?x=1"`, "/provider/<name>", "empty slot name"}},
		{"/provider/a/b", []string{`"/provider/a/b"`, "percent-encode", "/provider/a%2Fb"}},
		{"/provider/a/", []string{`"/provider/a/"`, "percent-encode", "/provider/a%2F"}},
		{"/provider/%C3%A9/b c", []string{"percent-encode", "/provider/%C3%A9%2Fb%20c"}},
		{"/provider/%zz/b", []string{"percent-encode", "/provider/%25zz%2Fb"}},
	}
	for _, test := range tests {
		got := Classify(test.target, defaultPaths).Refusal
		for _, token := range test.tokens {
			if !strings.Contains(got, token) {
				t.Errorf("refusal of %q lacks %q: %s", test.target, token, got)
			}
		}
	}
}

// TestHintTokens pins what the connect line of a mistyped provider URL must name
// (spec 01 8.1).
func TestHintTokens(t *testing.T) {
	got := Classify("/providers/foo", defaultPaths).Hint
	for _, token := range []string{"looks like a provider URL", "CLIENT slot", "/providers", "MultiplexTransport", "/provider/<name>", "DirectTransport"} {
		if !strings.Contains(got, token) {
			t.Errorf("hint lacks %q: %s", token, got)
		}
	}
}

// TestRefusalIsUsable: the URL a refusal proposes is accepted and names the slot
// that was meant.
func TestRefusalIsUsable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := rapid.StringMatching(`[a-c%/ é2F]{1,12}`).Draw(t, "raw")
		got := Classify("/provider/"+raw, defaultPaths)
		if got.Refusal == "" || !strings.Contains(raw, "/") {
			return
		}
		at := strings.LastIndex(got.Refusal, "/provider/")
		proposed := strings.TrimSuffix(got.Refusal[at:], ".")
		again := Classify(proposed, defaultPaths)
		// Whatever the raw text decodes to as one segment is the slot of the proposal.
		want := Classify("/"+raw, Paths{Provider: "/none", Providers: "/none-either"})
		if diff := cmp.Diff(Upgrade{Role: DedicatedProvider, Slot: want.Slot}, again, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%q proposes %q (-want +got):\n%s", raw, proposed, diff)
		}
	})
}
