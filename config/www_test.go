package config

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// spec 03 5.2: the file's directory for mounts in the file, the working
// directory for those of variables, which come last and replace a mount at the
// same prefix. spec 01 8.3: what is no directory is skipped with a warning.
func TestMounts(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, dir := range []string{"etc/site", "etc/docs", "front"} {
		write(t, dir+"/index.html", "x")
	}
	write(t, "etc/file", "x")
	abs, err := filepath.Abs("front")
	if err != nil {
		t.Fatal(err)
	}
	write(t, "etc/b.toml", `[www]
mounts = [
  { urlPrefix = "/", dir = "site" }, { urlPrefix = "/docs/", dir = "docs" }, { urlPrefix = "/abs", dir = '`+abs+`' },
  { urlPrefix = "/none", dir = "none" }, { urlPrefix = "/file", dir = "file" },
]
`)
	site, docs := filepath.Join("etc", "site"), filepath.Join("etc", "docs")
	file := []string{
		`[mcp-broker] www.mounts entry "/none" is skipped: ` + filepath.Join("etc", "none") + `: no such file or directory`,
		`[mcp-broker] www.mounts entry "/file" is skipped: ` + filepath.Join("etc", "file") + `: not a directory`,
	}
	tests := []struct {
		name     string
		env      []string
		mounts   []Mount
		warnings []string
	}{
		{"file", nil, []Mount{{"/", site}, {"/docs", docs}, {"/abs", abs}}, file},
		{"variables", []string{"MCP_BROKER_WWW_DIR=front", "MCP_BROKER_BUNDLE_DIR=etc/site"},
			[]Mount{{"/docs", docs}, {"/abs", abs}, {"/", "front"}, {"/bundle", "etc/site"}}, file},
		{"missing", []string{"MCP_BROKER_BUNDLE_DIR=nowhere"}, []Mount{{"/", site}, {"/docs", docs}, {"/abs", abs}},
			append(file[:2:2], `[mcp-broker] www.mounts entry "/bundle" is skipped: nowhere: no such file or directory`)},
		{"empty", []string{"MCP_BROKER_WWW_DIR=", "MCP_BROKER_BUNDLE_DIR= "}, []Mount{{"/", site}, {"/docs", docs}, {"/abs", abs}}, file},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := mustLoad(t, Source{Path: "etc/b.toml", Environ: tt.env})
			if diff := cmp.Diff(tt.mounts, cfg.WWW.Mounts); diff != "" {
				t.Errorf("mounts (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.warnings, cfg.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if err := cfg.Validate(); err != nil {
				t.Errorf("Validate: %v", err)
			}
		})
	}
}

// spec 01 5.11: the spellings of yes and no.
func TestOpen(t *testing.T) {
	for value, want := range map[string]string{
		`true`: OpenRoot, `false`: "", `""`: "", `" 0 "`: "", `"False"`: "", `"1"`: OpenRoot, `" TRUE "`: OpenRoot,
		`" /a "`: "/a", `"word"`: "word", `"http://localhost:3000/"`: "http://localhost:3000/",
	} {
		cfg, err := Parse("x.toml", []byte("[www]\nopen = "+value+"\n"))
		if err != nil || cfg.WWW.Open != want {
			t.Errorf("open = %s: %q, %v, want %q", value, cfg.WWW.Open, err, want)
		}
	}
	t.Chdir(t.TempDir())
	write(t, "broker.toml", "[www]\nopen = true\n")
	if cfg := mustLoad(t, Source{Environ: []string{"MCP_BROKER_OPEN=0"}}); cfg.WWW.Open != "" {
		t.Errorf("MCP_BROKER_OPEN=0 leaves %q", cfg.WWW.Open)
	}
}
