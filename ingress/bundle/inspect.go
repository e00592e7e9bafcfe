package bundle

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"slices"
)

// Verdict is what Verify found.
type Verdict struct {
	Signature Signature
	Manifest  Manifest
	Files     int
}

// Verify checks all that Open does short of the user's values and the unpacking:
// the signature with o.PublicKey, the archive, its checksums, the manifest. Errors
// are of type *Error, or that of the context.
func Verify(ctx context.Context, o Options) (*Verdict, error) {
	v, err := verify(ctx, o)
	if err == nil {
		err = v.archive.check(ctx)
	}
	if err != nil {
		return nil, named(o.Name, err)
	}
	return &Verdict{v.signature, v.manifest, len(v.archive.files)}, nil
}

// File is a file in a bundle.
type File struct {
	Name string
	Size int64
	Mode fs.FileMode
}

// Report is what Inspect found. Nothing vouches for it.
type Report struct {
	Manifest Manifest
	Files    []File // sorted by name
	Size     int64  // of the bundle
	Unpacked int64  // of its files together
	SHA256   string // of the bundle

	Embedded    *Signature // whose signature the bundle says to embed; nil without one, or if it is refused
	EmbeddedErr error      // why the embedded signature is refused by its own certificate
	Detached    string     // file of the detached signature, "" if there is none
}

// Inspect reads a bundle without a key and without unpacking it. It needs no more
// than o.Path. Errors are of type *Error, or that of the context.
func Inspect(ctx context.Context, o Options) (*Report, error) {
	r, err := inspect(ctx, o)
	if err != nil {
		return nil, named(o.Name, err)
	}
	return r, nil
}

func inspect(ctx context.Context, o Options) (*Report, error) {
	raw, err := readBundle(o.Path, o.Limits.withDefaults().FileBytes)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(raw)
	r := &Report{Size: int64(len(raw)), SHA256: hex.EncodeToString(sum[:])}
	content, block, err := splitBlock(raw)
	if err != nil {
		r.EmbeddedErr = err
	} else if block != nil {
		r.Embedded, r.EmbeddedErr = inspectBlock(content, block)
	}
	if _, err := os.Stat(o.signature()); !errors.Is(err, fs.ErrNotExist) {
		r.Detached = o.signature()
	}
	a, m, err := readArchive(ctx, content, o.Limits)
	if err != nil {
		return nil, err
	}
	r.Manifest, r.Unpacked = m, a.total
	for _, e := range a.entries {
		if !e.dir {
			r.Files = append(r.Files, File{e.name, int64(e.UncompressedSize64), e.mode})
		}
	}
	slices.SortFunc(r.Files, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	return r, nil
}

func inspectBlock(content, block []byte) (*Signature, error) {
	signed, err := parseSignedData(block)
	if err == nil {
		err = signed.verify(content)
	}
	if err != nil {
		return nil, err
	}
	s := describeSigner(signed.signer)
	return &s, nil
}
