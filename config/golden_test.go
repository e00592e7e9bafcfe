package config

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Every file of testdata is wrong; the golden file beside it is what the
// operator reads. Each TOML file has a JSON twin (spec 03 10.2 item 26).
func TestErrorsGolden(t *testing.T) {
	var inputs []string
	for _, pattern := range []string{"testdata/*.toml", "testdata/*.json"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		inputs = append(inputs, found...)
	}
	if len(inputs) < 20 {
		t.Fatalf("found %d inputs only", len(inputs))
	}
	for _, input := range inputs {
		t.Run(filepath.Base(input), func(t *testing.T) {
			data, err := os.ReadFile(input)
			if err != nil {
				t.Fatal(err)
			}
			_, err = Parse(filepath.Base(input), data)
			var problems *Error
			if !errors.As(err, &problems) {
				t.Fatalf("Parse = %v, want *Error", err)
			}
			checkGolden(t, input+".golden", problems.Error()+"\n")
		})
	}
}

func checkGolden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func TestEveryInputHasItsTwin(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.toml")
	if err != nil {
		t.Fatal(err)
	}
	for _, input := range inputs {
		twin := input[:len(input)-len(".toml")] + ".json"
		if _, err := os.Stat(twin); err != nil {
			t.Errorf("%s has no twin: %v", input, err)
		}
	}
}
