package config

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const exampleFile = "../broker.example.toml"

func TestExampleIsTheDefaults(t *testing.T) {
	got := mustLoad(t, Source{Path: exampleFile})
	want := Default()
	want.File, want.Digest = exampleFile, got.Digest
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-default +example):\n%s", diff)
	}
}

// Uncommenting every setting changes nothing, and none is missing.
func TestExampleShowsEveryDefault(t *testing.T) {
	data, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`(?m)^#(\S)`).ReplaceAllString(string(data), "$1")
	got, err := Parse(exampleFile, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.File = exampleFile
	want.Slots = map[string]Slot{"example": want.Slot("example")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-default +example):\n%s", diff)
	}
	for _, k := range append(want.keys(), new(Slot).keys()...) {
		name := k.name[strings.LastIndex(k.name, ".")+1:]
		if !strings.Contains(string(data), "\n#"+name+" = ") {
			t.Errorf("%s is missing", k.name)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"port", "paths", "providerTakeover", "providerRequestTimeoutMs", "strictHttp"}
	for name, want := range map[string]string{
		"prot": "port", "PORT": "port", "path": "paths", "providertakeover": "providerTakeover",
		"requestTimeoutMs": "", "strictHTTP": "strictHttp", "zzz": "", "": "", strings.Repeat("x", 100): "",
	} {
		if got := Nearest(name, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", name, got, want)
		}
	}
}
