package bundle

import (
	"archive/zip"
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// FuzzArchive opens any bytes: what is accepted stays inside its directory and its
// limits, and unpacks to exactly the files it lists.
func FuzzArchive(f *testing.F) {
	f.Add(fixture(f, "packed.mcpb"))
	f.Add(sound(f, part{name: "dir/"}, part{name: "dir/run", body: "#!", change: unix(0o100755)}))
	f.Add(sound(f, part{name: "../x", body: "x"}))
	f.Add(sound(f, part{name: "link", body: "/", change: unix(0o120777)}))
	f.Add(sound(f, part{name: "raw", body: "x", raw: true, change: func(h *zip.FileHeader) { h.CRC32++ }}))
	limits := Limits{FileBytes: 1 << 20, UnpackedBytes: 1 << 20, Entries: 50, Ratio: 20, PathBytes: 100, Depth: 5}
	f.Fuzz(func(t *testing.T, raw []byte) {
		a, err := openArchive(t.Context(), raw, limits)
		if err != nil {
			return
		}
		total := 0
		for _, e := range a.entries {
			total += int(e.UncompressedSize64)
			if !filepath.IsLocal(e.name) || strings.Contains(e.name, `\`) || len(e.name) > limits.PathBytes || strings.Count(e.name, "/") >= limits.Depth {
				t.Errorf("entry %q is accepted", e.name)
			}
		}
		if total > int(limits.UnpackedBytes) || len(a.entries) > limits.Entries {
			t.Errorf("%d bytes in %d entries are accepted", total, len(a.entries))
		}
		dir := filepath.Join(t.TempDir(), "out")
		if err := a.unpack(context.Background(), dir, ""); err != nil {
			if _, err := os.Lstat(dir); err == nil {
				t.Error("what was refused is there")
			}
			return
		}
		if unpacked := tree(t, dir); len(unpacked) > limits.Entries {
			t.Errorf("%d files and directories are accepted", len(unpacked))
		}
		for name, file := range a.files {
			info, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(name)))
			if err != nil || !info.Mode().IsRegular() || info.Size() != int64(file.UncompressedSize64) {
				t.Errorf("%q: %v, %v", name, info, err)
			}
		}
	})
}

// FuzzManifest resolves any manifest with any value: no panic, and a command
// whenever there is no error.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(nodeManifest), "v")
	f.Add([]byte(server(`{"command":"bin/run","args":["${user_config.k}","a${user_config.k}"],"env":{"A":"${HOME}"}}`,
		`{"k":{"type":"number","min":1}}`)), "2")
	f.Add([]byte(server(`{"command":"n","args":["${user_config.k}"]}`, `{"k":{"type":"directory","multiple":true,"default":["${HOME}"]}}`)), "")
	f.Add([]byte(`{"server":{"type":"uv","entry_point":"s.py"}}`), "")
	f.Fuzz(func(t *testing.T, text []byte, given string) {
		m, err := parseManifest(text)
		if err != nil {
			return
		}
		for _, value := range []any{nil, given, []any{given, 1.5}} {
			r := resolver{manifest: m, sys: system{"linux", "/home/u"}, dir: "/b", has: func(string) bool { return false }}
			l, err := r.resolve(Options{UserConfig: map[string]any{"k": value}, BaseDir: "/base"})
			if err == nil && strings.TrimSpace(l.Command) == "" {
				t.Errorf("no command: %+v", l)
			}
			if err == nil && filepath.IsAbs(l.Command) && strings.HasPrefix(filepath.Clean(l.Command), "/b/") {
				t.Errorf("%q is not in the bundle", l.Command)
			}
		}
	})
}

// FuzzPKCS7 reads any signature of packed.mcpb: no panic, and none that is
// accepted is valid for other content.
func FuzzPKCS7(f *testing.F) {
	packed := fixture(f, "packed.mcpb")
	for _, name := range []string{"rsa", "ecdsa", "pss", "noattr", "attached", "sha1", "nocerts", "two", "other"} {
		f.Add(fixture(f, "cms/"+name+".p7"))
	}
	_, block, err := splitBlock(fixture(f, "signed/leaf.mcpb"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(block)
	root, err := parseTrust(fixture(f, "signed/root.pem"))
	if err != nil {
		f.Fatal(err)
	}
	changed := bytes.Clone(packed)
	changed[0] ^= 1
	f.Fuzz(func(t *testing.T, der []byte) {
		if _, err := root.vouches(changed, der, time.Now()); err == nil {
			t.Error("other content is accepted")
		}
		_, _ = root.vouches(packed, der, time.Now())
	})
}

// FuzzBlock splits any bytes: content and signature are parts of the file, in
// order, framed as they have to be.
func FuzzBlock(f *testing.F) {
	f.Add(fixture(f, "signed/leaf.mcpb"))
	f.Add([]byte("zip" + blockHeader + "\x01\x00\x00\x00x" + blockFooter))
	f.Add([]byte(blockHeader + blockHeader + "\x00\x00\x00\x00" + blockFooter))
	f.Fuzz(func(t *testing.T, raw []byte) {
		content, pkcs7, err := splitBlock(raw)
		if err != nil || pkcs7 == nil {
			if !bytes.Equal(content, raw) {
				t.Error("content is missing")
			}
			return
		}
		if !bytes.HasPrefix(raw, content) || len(raw) != len(content)+len(blockHeader)+blockLength+len(pkcs7)+len(blockFooter) ||
			!bytes.HasPrefix(raw[len(content):], []byte(blockHeader)) || !bytes.HasSuffix(raw, append(bytes.Clone(pkcs7), blockFooter...)) {
			t.Errorf("content of %d and signature of %d bytes in a file of %d", len(content), len(pkcs7), len(raw))
		}
	})
}
