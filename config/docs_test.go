package config

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// docs/upstreams.md shows every key of every kind of upstream, with its default,
// and its examples are valid.
func TestUpstreamsDocument(t *testing.T) {
	data, err := os.ReadFile("../docs/upstreams.md")
	if err != nil {
		t.Fatal(err)
	}
	for i, part := range strings.Split(string(data), "```") {
		if block, isTOML := strings.CutPrefix(part, "toml\n"); isTOML && i%2 == 1 {
			if _, err := Parse("upstreams.toml", []byte(block)); err != nil {
				t.Errorf("%v in\n%s", err, block)
			}
		}
	}
	row := regexp.MustCompile("(?m)^\\| `([a-zA-Z.]+)` \\| (.*?) \\|")
	documented := map[string]string{}
	for _, m := range row.FindAllStringSubmatch(string(data), -1) {
		if _, twice := documented[m[1]]; !twice {
			documented[m[1]] = strings.Trim(m[2], "`")
		}
	}
	for list, empty := range Default().lists() {
		for _, k := range empty().keys() {
			got, ok := documented[k.name]
			if !ok {
				t.Errorf("%s of %s is missing", k.name, list)
			}
			// Only numbers can be compared: other defaults are told in words.
			if want := k.value.String(); strings.HasPrefix(k.value.typ(), "integer") && got != want {
				t.Errorf("%s of %s has the default %s, documented is %q", k.name, list, want, got)
			}
		}
	}
}

// The upstreams of the example are one valid configuration, once the comment
// signs are gone.
func TestExampleUpstreams(t *testing.T) {
	data, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "# [[stdioUpstreams]]\n")
	lines, _, found := strings.Cut("# [[stdioUpstreams]]\n"+rest, "\n\n")
	if !found {
		t.Fatal("the example has no upstreams")
	}
	var text strings.Builder
	assigns := regexp.MustCompile(`^(\[|[a-zA-Z]+ = )`)
	for line := range strings.Lines(lines) {
		if line = strings.TrimPrefix(line, "# "); assigns.MatchString(line) {
			text.WriteString(line)
		}
	}
	cfg, err := Parse("example.toml", []byte(text.String()))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text.String())
	}
	slots := cfg.Upstreams()
	slices.Sort(slots)
	if diff := cmp.Diff([]string{"crm", "files", "notes", "paris"}, slots); diff != "" {
		t.Errorf("slots (-want +got):\n%s", diff)
	}
}
