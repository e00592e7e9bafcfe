package bundle

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// leftoverAge is how old an unfinished copy has to be to be one that a killed
// broker left behind.
const leftoverAge = time.Hour

// unpack makes dir the content of the archive. It stands beside dir until it is
// complete. The file executable may be started even if the packer's system knew no
// such mode; it may be "".
func (a *archive) unpack(ctx context.Context, dir, executable string) error {
	parent, base := filepath.Split(dir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return because(ErrWrite, err, "the cache directory cannot be made")
	}
	removeLeftovers(parent, base)
	temp, err := os.MkdirTemp(parent, newPrefix(base)+"*")
	if err != nil {
		return because(ErrWrite, err, "the bundle cannot be unpacked")
	}
	err = a.write(ctx, temp, executable)
	if err == nil {
		err = exchange(temp, dir)
	}
	if err == nil {
		return nil
	}
	err = errors.Join(err, os.RemoveAll(temp))
	var refused *Error
	if errors.As(err, &refused) || ctx.Err() != nil {
		return err
	}
	return because(ErrWrite, err, "the bundle cannot be unpacked")
}

// write fills an empty directory. os.Root keeps it inside, whatever happens beside
// it.
func (a *archive) write(ctx context.Context, dir, executable string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, e := range a.entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if e.dir {
			err = root.MkdirAll(e.name, 0o755)
		} else {
			err = writeFile(ctx, root, e, executable == e.name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func writeFile(ctx context.Context, root *os.Root, e entry, executable bool) error {
	if err := root.MkdirAll(path.Dir(e.name), 0o755); err != nil {
		return err
	}
	mode := e.mode
	if executable {
		mode |= 0o100 | mode&0o044>>2 // who may read it may start it
	}
	f, err := root.OpenFile(e.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	return errors.Join(extract(ctx, e.File, f), f.Close())
}

// exchange puts a directory where another one may be. A process that still runs in
// the old one keeps it until it ends, on systems that can.
func exchange(from, to string) error {
	if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
		return os.Rename(from, to)
	}
	parent, base := filepath.Split(to)
	aside, err := os.MkdirTemp(parent, oldPrefix(base)+"*")
	if err != nil {
		return err
	}
	// What cannot be removed now is removed as a leftover later.
	defer os.RemoveAll(aside)
	old := filepath.Join(aside, "bundle")
	if err := os.Rename(to, old); err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return errors.Join(err, os.Rename(old, to))
	}
	return nil
}

func newPrefix(base string) string { return "." + base + "~new-" }
func oldPrefix(base string) string { return "." + base + "~old-" }

// removeLeftovers removes what a broker left behind that was killed while it
// unpacked. Failures are those of a later attempt too, and harmless.
func removeLeftovers(parent, base string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), newPrefix(base)) && !strings.HasPrefix(e.Name(), oldPrefix(base)) {
			continue
		}
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > leftoverAge {
			_ = os.RemoveAll(filepath.Join(parent, e.Name()))
		}
	}
}

// maxPlainName bounds the slot names that are directory names as they are.
const maxPlainName = 64

// directoryName gives each slot one directory: its name where every file system
// takes that for the same name, else what can be read of it and a digest.
func directoryName(slot string) string {
	if plainName(slot) {
		return slot
	}
	readable := strings.Map(func(r rune) rune {
		if plainRune(r) {
			return r
		}
		return '-'
	}, strings.ToLower(slot))
	if len(readable) > maxPlainName {
		readable = readable[:maxPlainName]
	}
	sum := sha256.Sum256([]byte(slot))
	return fmt.Sprintf("%s~%x", strings.TrimLeft(readable, "."), sum[:8])
}

// devices are names that Windows keeps for itself.
var devices = []string{"con", "prn", "aux", "nul"}

func plainName(name string) bool {
	if name == "" || len(name) > maxPlainName || name[0] == '.' || name[len(name)-1] == '.' {
		return false
	}
	stem, _, _ := strings.Cut(name, ".")
	if slices.Contains(devices, stem) || len(stem) == 4 && (strings.HasPrefix(stem, "com") || strings.HasPrefix(stem, "lpt")) {
		return false
	}
	return strings.IndexFunc(name, func(r rune) bool { return !plainRune(r) }) < 0
}

func plainRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.'
}
