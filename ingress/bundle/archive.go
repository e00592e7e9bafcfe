package bundle

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// archive is a ZIP whose directory has been checked. The data of an entry is
// checked when it is read.
type archive struct {
	limits  Limits
	entries []entry
	files   map[string]*zip.File // regular files by name
	total   int64                // unpacked bytes
}

type entry struct {
	*zip.File
	name string // slash-separated, without a slash at the end
	dir  bool
	mode fs.FileMode // of a file
}

// openArchive checks everything that can be known without unpacking.
func openArchive(ctx context.Context, content []byte, l Limits) (*archive, error) {
	content, err := checkDirectory(content, l.Entries)
	if err != nil {
		return nil, err
	}
	r, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return nil, refusal(ErrArchive, "not a ZIP archive (%v)", err).causedBy(err)
	}
	a := &archive{limits: l, files: make(map[string]*zip.File)}
	for _, f := range r.File {
		e, err := checkEntry(f, l)
		if err != nil {
			return nil, err
		}
		// Bounded by the number of entries: no single size exceeds 32 bits.
		a.total += int64(f.UncompressedSize64)
		a.entries = append(a.entries, e)
	}
	if a.total > l.UnpackedBytes {
		return nil, refusal(ErrLimit, "the archive unpacks to %d bytes, more than %d", a.total, l.UnpackedBytes)
	}
	if a.total > smallArchive && (a.total-1)/l.Ratio >= int64(len(content)) {
		return nil, refusal(ErrLimit, "the archive unpacks to %d bytes, more than %d times its size", a.total, l.Ratio)
	}
	return a, a.index(ctx)
}

// index refuses names that mean two things, and more directories than there may be
// entries: a path makes those on its way without an entry of their own.
func (a *archive) index(ctx context.Context) error {
	dirs := make(map[string]bool)
	for _, e := range a.entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if e.dir {
			dirs[e.name] = true
		} else if a.files[e.name] != nil {
			return refusal(ErrArchive, "corrupt ZIP: %q is there twice", e.name)
		} else {
			a.files[e.name] = e.File
		}
		for dir := path.Dir(e.name); dir != "." && !dirs[dir]; dir = path.Dir(dir) {
			dirs[dir] = true
		}
		if len(a.files)+len(dirs) > a.limits.Entries {
			return refusal(ErrLimit, "the archive has more than %d files and directories", a.limits.Entries)
		}
	}
	for name := range a.files {
		if dirs[name] {
			return refusal(ErrArchive, "corrupt ZIP: %q is a file and a directory", name)
		}
	}
	return nil
}

// Unix file types, as ZIP keeps them in the upper half of the attributes.
const (
	typeMask = 0o170000
	typeDir  = 0o040000
	typeFile = 0o100000
)

// encrypted is the general purpose flag of entries that need a password.
const encrypted = 1

func checkEntry(f *zip.File, l Limits) (entry, error) {
	e := entry{File: f, dir: strings.HasSuffix(f.Name, "/"), name: strings.TrimSuffix(f.Name, "/")}
	if len(f.Name) > l.PathBytes {
		return e, refusal(ErrLimit, "ZIP entry %.60q... has a path longer than %d bytes", f.Name, l.PathBytes)
	}
	if strings.Count(e.name, "/") >= l.Depth {
		return e, refusal(ErrLimit, "ZIP entry %.60q... has a path of more than %d elements", f.Name, l.Depth)
	}
	if err := checkName(f.Name, e.name); err != nil {
		return e, err
	}
	if f.Flags&encrypted != 0 {
		return e, refusal(ErrArchive, "ZIP entry %q is encrypted", f.Name)
	}
	if f.Method != zip.Store && f.Method != zip.Deflate {
		return e, refusal(ErrArchive, "unsupported ZIP compression method %d for %q", f.Method, f.Name)
	}
	if e.dir && f.UncompressedSize64 != 0 {
		return e, refusal(ErrArchive, "corrupt ZIP: the directory %q has content", f.Name)
	}
	unix := f.ExternalAttrs >> 16
	switch kind := unix & typeMask; {
	case kind == 0, kind == typeDir && e.dir, kind == typeFile && !e.dir:
	default:
		return e, refusal(ErrArchive, "ZIP entry %q is neither file nor directory", f.Name)
	}
	e.mode = 0o644
	if unix != 0 {
		// The owner has to be able to read what the server is made of.
		e.mode = fs.FileMode(unix)&fs.ModePerm | 0o600
	}
	return e, nil
}

// checkName accepts relative paths that mean the same on every system.
func checkName(full, name string) error {
	slashed := strings.ReplaceAll(name, `\`, "/")
	up := slashed == ".." || strings.HasPrefix(slashed, "../") || strings.HasSuffix(slashed, "/..") || strings.Contains(slashed, "/../")
	drive := len(slashed) > 1 && slashed[1] == ':'
	switch {
	case up || drive || strings.HasPrefix(slashed, "/") || name == "":
		return refusal(ErrArchive, "unsafe ZIP entry path (zip-slip): %s", printable(full))
	case name == "." || !fs.ValidPath(name) || !filepath.IsLocal(filepath.FromSlash(name)) ||
		strings.ContainsAny(name, "\\\x00"):
		return refusal(ErrArchive, "unusable ZIP entry path: %q", full)
	}
	return nil
}

// printable leaves usual names as they are, and keeps the others from driving a
// terminal.
func printable(name string) string {
	quoted := strconv.Quote(name)
	return quoted[1 : len(quoted)-1]
}

// has tells whether there is a file of this name.
func (a *archive) has(name string) bool { return a.files[name] != nil }

// manifest reads manifest.json.
func (a *archive) manifest(ctx context.Context) ([]byte, error) {
	f := a.files[manifestName]
	if f == nil {
		return nil, refusal(ErrManifest, "manifest.json missing inside the bundle")
	}
	if f.UncompressedSize64 > maxManifestBytes {
		return nil, refusal(ErrLimit, "manifest.json is larger than %d bytes", maxManifestBytes)
	}
	var text bytes.Buffer
	if err := extract(ctx, f, &text); err != nil {
		return nil, err
	}
	return text.Bytes(), nil
}

// check reads every entry.
func (a *archive) check(ctx context.Context) error {
	for _, e := range a.entries {
		if e.dir {
			continue
		}
		if err := extract(ctx, e.File, io.Discard); err != nil {
			return err
		}
	}
	return nil
}

// extract copies the content of a file. It never copies more than the directory
// says, and compares the checksum even where it is zero.
func extract(ctx context.Context, f *zip.File, to io.Writer) error {
	from, err := f.Open()
	if err != nil {
		return refusal(ErrArchive, "corrupt ZIP: bad local header for %q", f.Name).causedBy(err)
	}
	defer from.Close()
	sum := crc32.NewIEEE()
	target := &target{ctx: ctx, to: to}
	n, err := io.Copy(io.MultiWriter(target, sum), io.LimitReader(from, int64(f.UncompressedSize64)+1))
	switch {
	case target.err != nil:
		return target.err
	case errors.Is(err, zip.ErrChecksum), err == nil && n == int64(f.UncompressedSize64) && sum.Sum32() != f.CRC32:
		return refusal(ErrArchive, "corrupt ZIP: wrong checksum of %q", f.Name).causedBy(err)
	case errors.Is(err, zip.ErrFormat), errors.Is(err, io.ErrUnexpectedEOF), err == nil && n != int64(f.UncompressedSize64):
		return refusal(ErrArchive, "corrupt ZIP: %q is not as long as it says", f.Name).causedBy(err)
	case err != nil:
		return because(ErrArchive, err, "corrupt ZIP: %q cannot be unpacked", f.Name)
	}
	return nil
}

// target keeps failures of the writing side apart from those of the archive.
type target struct {
	ctx context.Context
	to  io.Writer
	err error
}

func (t *target) Write(p []byte) (int, error) {
	if t.err = t.ctx.Err(); t.err != nil {
		return 0, t.err
	}
	var n int
	n, t.err = t.to.Write(p)
	return n, t.err
}
