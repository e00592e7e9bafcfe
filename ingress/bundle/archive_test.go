package bundle

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// base is what a sound archive unpacks to.
const base = len(nodeManifest) + 1

// patch changes a copy where a text is found.
func patch(raw []byte, at string, offset int, with string) []byte {
	out := bytes.Clone(raw)
	copy(out[bytes.LastIndex(out, []byte(at))+offset:], with)
	return out
}

// end changes the end of central directory record.
func end(raw []byte, offset int, with string) []byte { return patch(raw, endRecord, offset, with) }

func unix(mode uint32) func(*zip.FileHeader) {
	return func(h *zip.FileHeader) { h.CreatorVersion, h.ExternalAttrs = 3<<8, mode<<16 }
}

// spec 03 4.3 and 10.2 item 24: whatever is wrong with the archive, nothing is
// written and the copy that is there stays. The signature is right each time.
func TestHostileArchives(t *testing.T) {
	good := sound(t)
	first := bytes.Index(good, []byte(headerRecord))
	named := func(name string) []byte { return sound(t, part{name: name, body: "x"}) }
	slip := func(name string) string { return "unsafe ZIP entry path (zip-slip): " + name }
	unusable := func(name string) string { return fmt.Sprintf("unusable ZIP entry path: %q", name) }
	tests := []struct {
		name string
		raw  []byte
		kind error
		want string
	}{
		{"empty", nil, ErrArchive, "not a ZIP archive (no end of central directory)"},
		{"text", []byte("#!/bin/sh\n"), ErrArchive, "not a ZIP archive (no end of central directory)"},
		{"cut", good[:len(good)-1], ErrArchive, "not a ZIP archive (its end is cut off)"},
		{"cut in the directory", good[:first+50], ErrArchive, "not a ZIP archive (no end of central directory)"},
		{"comment beyond the end", end(good, 20, "\x01\x00"), ErrArchive, "not a ZIP archive (its end is cut off)"},
		{"too much behind the end", append(bytes.Clone(good), make([]byte, maxComment+1)...), ErrArchive,
			"not a ZIP archive (no end of central directory)"},
		{"ZIP64 by count", end(good, 8, "\xff\xff\xff\xff"), ErrArchive, "ZIP64 archives are not supported"},
		{"ZIP64 by offset", end(good, 16, "\xff\xff\xff\xff"), ErrArchive, "ZIP64 archives are not supported"},
		{"ZIP64 by locator", patch(named(strings.Repeat("n", 40)), strings.Repeat("n", 40), 20, zip64Locator), ErrArchive,
			"ZIP64 archives are not supported"},
		{"ZIP64 by size", patch(good, headerRecord, 24, "\xff\xff\xff\xff"), ErrArchive, "ZIP64 archives are not supported"},
		{"part of several", end(good, 4, "\x01"), ErrArchive, "not a ZIP archive (one part of several)"},
		{"something before it", append([]byte("#!/bin/sh\n"), good...), ErrArchive,
			"not a ZIP archive (its central directory is not where it says)"},
		{"offset", end(good, 16, "\x00"), ErrArchive, "not a ZIP archive (its central directory is not where it says)"},
		{"fewer entries", end(good, 8, "\x01\x00\x01"), ErrArchive, "corrupt ZIP: 2 entries where its end says 1"},
		{"central header", patch(good[:len(good):len(good)], headerRecord, 0, "XX"), ErrArchive,
			fmt.Sprintf("corrupt ZIP: bad central directory header at offset %d", bytes.LastIndex(good, []byte(headerRecord)))},
		{"long name in the directory", patch(good, headerRecord, 28, "\xff\xff"), ErrArchive,
			fmt.Sprintf("corrupt ZIP: bad central directory header at offset %d", bytes.LastIndex(good, []byte(headerRecord)))},
		{"local header", append([]byte("XX"), good[2:]...), ErrArchive, `corrupt ZIP: bad local header for "manifest.json"`},
		{"method", sound(t, part{name: "x", raw: true, change: func(h *zip.FileHeader) { h.Method = 12 }}), ErrArchive,
			`unsupported ZIP compression method 12 for "x"`},
		{"encrypted", sound(t, part{name: "x", raw: true, change: func(h *zip.FileHeader) { h.Flags = encrypted }}), ErrArchive,
			`ZIP entry "x" is encrypted`},
		{"checksum", sound(t, part{name: "x", body: "content", raw: true, change: func(h *zip.FileHeader) { h.CRC32++ }}), ErrArchive,
			`corrupt ZIP: wrong checksum of "x"`},
		{"checksum zero", sound(t, part{name: "x", body: "content", raw: true, change: func(h *zip.FileHeader) { h.CRC32 = 0 }}), ErrArchive,
			`corrupt ZIP: wrong checksum of "x"`},
		{"longer than it says", sound(t, part{name: "x", body: "content", raw: true, change: func(h *zip.FileHeader) {
			h.UncompressedSize64, h.CRC32 = 3, crc32.ChecksumIEEE([]byte("con"))
		}}), ErrArchive, `corrupt ZIP: "x" is not as long as it says`},
		{"shorter than it says", sound(t, part{name: "x", body: "content", raw: true, change: func(h *zip.FileHeader) {
			h.UncompressedSize64 = 9
		}}), ErrArchive, `corrupt ZIP: "x" is not as long as it says`},
		{"beyond the file", sound(t, part{name: "x", body: "content", raw: true, change: func(h *zip.FileHeader) {
			h.CompressedSize64, h.UncompressedSize64 = 9999, 9999
		}}), ErrArchive, `corrupt ZIP: "x" is not as long as it says`},
		{"not deflate", sound(t, part{name: "x", body: "\xff\xff\xff", raw: true, change: func(h *zip.FileHeader) { h.Method = zip.Deflate }}),
			ErrArchive, `corrupt ZIP: "x" cannot be unpacked: flate: corrupt input before offset 1`},

		{"up", named("../x"), ErrArchive, slip("../x")},
		{"up inside", named("a/../../x"), ErrArchive, slip("a/../../x")},
		{"up at the end", named("a/.."), ErrArchive, slip("a/..")},
		{"parent", named(".."), ErrArchive, slip("..")},
		{"parent directory", named("../"), ErrArchive, slip("../")},
		{"absolute", named("/etc/x"), ErrArchive, slip("/etc/x")},
		{"root", named("/"), ErrArchive, slip("/")},
		{"drive", named("C:x"), ErrArchive, slip("C:x")},
		{"backslashes up", named(`..\x`), ErrArchive, slip(`..\\x`)},
		{"share", named(`\\host\x`), ErrArchive, slip(`\\\\host\\x`)},
		{"terminal", named("../\x1b[2J"), ErrArchive, slip(`../\x1b[2J`)},
		{"backslash", named(`a\x`), ErrArchive, unusable(`a\x`)},
		{"here", named("./x"), ErrArchive, unusable("./x")},
		{"empty element", named("a//x"), ErrArchive, unusable("a//x")},
		{"dot", named("."), ErrArchive, unusable(".")},
		{"NUL", named("a\x00b"), ErrArchive, unusable("a\x00b")},
		{"not UTF-8", named("\xff"), ErrArchive, unusable("\xff")},

		{"symbolic link", sound(t, part{name: "x", body: "/etc", change: unix(0o120777)}), ErrArchive, `ZIP entry "x" is neither file nor directory`},
		{"device", sound(t, part{name: "x", change: unix(0o020666)}), ErrArchive, `ZIP entry "x" is neither file nor directory`},
		{"pipe", sound(t, part{name: "x", change: unix(0o010666)}), ErrArchive, `ZIP entry "x" is neither file nor directory`},
		{"directory without slash", sound(t, part{name: "x", change: unix(0o040755)}), ErrArchive, `ZIP entry "x" is neither file nor directory`},
		{"file with slash", sound(t, part{name: "x/", change: unix(0o100644)}), ErrArchive, `ZIP entry "x/" is neither file nor directory`},
		{"directory with content", sound(t, part{name: "x/", raw: true, change: func(h *zip.FileHeader) { h.UncompressedSize64 = 1 }}),
			ErrArchive, `corrupt ZIP: the directory "x/" has content`},
		{"two manifests", sound(t, part{name: "manifest.json", body: "{}"}), ErrArchive, `corrupt ZIP: "manifest.json" is there twice`},
		{"file and directory", sound(t, part{name: "index.js/", body: ""}), ErrArchive, `corrupt ZIP: "index.js" is a file and a directory`},
		{"file and parent", sound(t, part{name: "index.js/x/y"}), ErrArchive, `corrupt ZIP: "index.js" is a file and a directory`},

		{"long path", named(strings.Repeat("d/", 100) + "x"), ErrLimit,
			fmt.Sprintf("ZIP entry %q... has a path longer than 100 bytes", strings.Repeat("d/", 30))},
		{"deep path", named(strings.Repeat("d/", 32) + "x"), ErrLimit,
			fmt.Sprintf("ZIP entry %q... has a path of more than 32 elements", strings.Repeat("d/", 30))},
		{"deep directory", named(strings.Repeat("d/", 33)), ErrLimit,
			fmt.Sprintf("ZIP entry %q... has a path of more than 32 elements", strings.Repeat("d/", 30))},
		{"too many directories", sound(t, part{name: "a/b/c/x"}, part{name: "b/a/c/x"}, part{name: "b/a/c/"}, part{name: "b/d/"}), ErrLimit,
			"the archive has more than 10 files and directories"},
		{"too many", sound(t, make([]part, 20)...), ErrLimit, "the archive has more than 10 entries"},
		{"count hides many", end(sound(t, make([]part, 20)...), 8, "\x01\x00\x01\x00"), ErrLimit, "the archive has more than 10 entries"},
		{"too large", sound(t, part{name: "x", raw: true, change: func(h *zip.FileHeader) { h.UncompressedSize64 = 5 << 20 }}), ErrLimit,
			fmt.Sprintf("the archive unpacks to %d bytes, more than 4194304", base+(5<<20))},
		{"bomb", sound(t, part{name: "x", body: strings.Repeat("\x00", 2<<20)}), ErrLimit,
			fmt.Sprintf("the archive unpacks to %d bytes, more than 20 times its size", base+(2<<20))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := signed(t, tt.raw)
			o.Limits = Limits{Entries: 10, PathBytes: 100, UnpackedBytes: 4 << 20, Ratio: 20}
			old := o.CacheDir + "/demo"
			if err := os.MkdirAll(old, 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, old+"/old", []byte("old"))
			_, err := Open(t.Context(), o)
			refused(t, err, tt.kind, `mcpb bundle "demo": `+tt.want+", bundle refused.")
			unchanged(t, o.CacheDir)
			o.Name = ""
			_, err = Verify(t.Context(), o)
			refused(t, err, tt.kind, tt.want)
		})
	}
}

// unchanged checks that a cache holds the old copy and nothing else.
func unchanged(t *testing.T, cache string) {
	t.Helper()
	var found []string
	err := fs.WalkDir(os.DirFS(cache), ".", func(name string, _ fs.DirEntry, err error) error {
		found = append(found, name)
		return err
	})
	if got := strings.Join(found, " "); err != nil || got != ". demo demo/old" {
		t.Errorf("the cache holds %s, %v", got, err)
	}
}

// spec 03 4.3: trailing bytes are ignored, comments too.
func TestArchiveTrailer(t *testing.T) {
	good := sound(t)
	comment := append(end(good, 20, "\x03\x00"), "end"...)
	for name, raw := range map[string][]byte{
		"trailing bytes": append(bytes.Clone(good), make([]byte, maxComment)...),
		"comment":        comment,
		"both":           append(bytes.Clone(comment), "behind"...),
	} {
		if _, _, err := readArchive(t.Context(), raw, Limits{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The bounds are of what is refused, not of what is just within them: a directory
// counts once, however it is named.
func TestArchiveWithinLimits(t *testing.T) {
	raw := sound(t, part{name: strings.Repeat("d/", 31) + "x"}, part{name: "d/"}, part{name: "d/d/"}, part{name: "d/y"})
	for entries, accepted := range map[int]bool{34: false, 35: true} {
		a, err := openArchive(t.Context(), raw, Limits{Entries: entries}.withDefaults())
		if accepted != (err == nil) {
			t.Errorf("with %d files and directories: %v", entries, err)
		}
		if err == nil && len(a.files) != 4 {
			t.Errorf("%d files", len(a.files))
		}
	}
}

// Spec 03 4.3, for whoever reads what nobody has signed: what an archive costs is
// bounded by its entries, however deep their paths are, and ends with the context.
func TestHostilePathsAreCheap(t *testing.T) {
	var parts []part
	for i := range 4000 {
		parts = append(parts, part{name: fmt.Sprintf("%05d/", i) + strings.Repeat("a/", 30) + "f"})
	}
	raw := sound(t, parts...)
	path := write(t, filepath.Join(t.TempDir(), "x.mcpb"), raw)
	_, err := Inspect(t.Context(), Options{Path: path})
	refused(t, err, ErrLimit, "the archive has more than 50000 files and directories")
	_, err = Inspect(t.Context(), Options{Path: path, Limits: Limits{Depth: 31}})
	refused(t, err, ErrLimit, fmt.Sprintf("ZIP entry %q... has a path of more than 31 elements", "00000/"+strings.Repeat("a/", 27)))

	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := openArchive(ended, raw, Limits{}.withDefaults()); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
}

// Overlapping entries unpack one piece of data many times; each counts.
func TestOverlappingEntries(t *testing.T) {
	data := part{name: "a", body: strings.Repeat("\x00", 1<<20)}
	raw := sound(t, data)
	at := bytes.LastIndex(raw, []byte(headerRecord))
	stop := bytes.LastIndex(raw, []byte(endRecord))
	header, record := raw[at:stop], bytes.Clone(raw[stop:])
	out := bytes.Clone(raw[:stop])
	for i := range 30 {
		again := bytes.Clone(header)
		again[headerSize] = byte('b' + i)
		out = append(out, again...)
	}
	binary.LittleEndian.PutUint16(record[8:], 33)
	binary.LittleEndian.PutUint16(record[10:], 33)
	binary.LittleEndian.PutUint32(record[12:], u32(record, 12)+uint32(30*len(header)))
	_, err := openArchive(t.Context(), append(out, record...), Limits{}.withDefaults())
	refused(t, err, ErrLimit, fmt.Sprintf("the archive unpacks to %d bytes, more than 100 times its size", base+(31<<20)))
}

func TestManifestSize(t *testing.T) {
	_, _, err := readArchive(t.Context(), makeZip(t, part{name: "manifest.json", body: strings.Repeat(" ", maxManifestBytes+1), raw: true}), Limits{})
	refused(t, err, ErrLimit, "manifest.json is larger than 1048576 bytes")
	_, _, err = readArchive(t.Context(), makeZip(t, part{name: "dir/manifest.json", body: nodeManifest}), Limits{})
	refused(t, err, ErrManifest, "manifest.json missing inside the bundle")
}
