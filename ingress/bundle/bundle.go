package bundle

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Options name a bundle and what its user has to say about it. Paths are absolute.
type Options struct {
	Name string // slot; names the directory below CacheDir
	Path string // the bundle
	// PublicKey is a PEM file: a public key, or a certificate.
	PublicKey string
	// Signature is the detached signature. When it is empty, Path + ".sig" is one if
	// it exists, and the embedded signature counts too.
	Signature string
	// UserConfig holds values for the manifest's user_config: strings, booleans,
	// numbers, and lists of them, as TOML or JSON decode.
	UserConfig map[string]any
	// BaseDir is what relative values of type directory and file are relative to.
	// When it is empty they stay as they are.
	BaseDir  string
	CacheDir string // receives the unpacked bundle, as CacheDir/<Name>
	Limits   Limits
}

// signature returns where the detached signature is expected.
func (o Options) signature() string {
	if o.Signature != "" {
		return o.Signature
	}
	return o.Path + signatureSuffix
}

// Launch says how to start the server of an unpacked bundle.
type Launch struct {
	Command string // a path, or a name to look up in PATH
	Args    []string
	Env     map[string]string // additions to the environment; nil without any
	Dir     string            // the unpacked bundle, what ${__dirname} stands for
	// Secrets are the values of options the manifest calls sensitive, for Mask.
	Secrets  []string
	Manifest Manifest
}

// Mask replaces the secrets in a text that is going to be shown, such as Args.
func (l *Launch) Mask(text string) string {
	for _, s := range l.Secrets {
		text = strings.ReplaceAll(text, s, "***")
	}
	return text
}

// Open verifies the bundle, unpacks it and resolves its command. An earlier copy
// in its place is replaced, and stays if anything is refused. One broker at a time
// uses a CacheDir. Errors are of type *Error, or that of the context.
func Open(ctx context.Context, o Options) (*Launch, error) {
	launch, err := open(ctx, o)
	if err != nil {
		return nil, named(o.Name, err)
	}
	return launch, nil
}

func open(ctx context.Context, o Options) (*Launch, error) {
	v, err := verify(ctx, o)
	if err != nil {
		return nil, err
	}
	if !filepath.IsAbs(o.CacheDir) {
		return nil, refusal(ErrWrite, "the cache directory %q is not absolute", o.CacheDir)
	}
	dir := filepath.Join(o.CacheDir, directoryName(o.Name))
	r := resolver{manifest: v.manifest, sys: thisSystem(), dir: dir, has: v.archive.has}
	launch, err := r.resolve(o)
	if err != nil {
		return nil, err
	}
	if err := v.archive.unpack(ctx, dir, r.executable); err != nil {
		return nil, err
	}
	return launch, nil
}

// verified is a bundle that its signature vouches for.
type verified struct {
	signature Signature
	archive   *archive
	manifest  Manifest
}

func verify(ctx context.Context, o Options) (*verified, error) {
	raw, err := readBundle(o.Path, o.Limits.withDefaults().FileBytes)
	if err != nil {
		return nil, err
	}
	signature, err := authenticate(o, raw)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	content, _, _ := splitBlock(raw)
	a, m, err := readArchive(ctx, content, o.Limits)
	if err != nil {
		return nil, err
	}
	return &verified{signature, a, m}, nil
}

// readArchive checks the archive and reads its manifest.
func readArchive(ctx context.Context, content []byte, l Limits) (*archive, Manifest, error) {
	a, err := openArchive(ctx, content, l.withDefaults())
	if err != nil {
		return nil, Manifest{}, err
	}
	text, err := a.manifest(ctx)
	if err != nil {
		return nil, Manifest{}, err
	}
	m, err := parseManifest(text)
	return a, m, err
}

// system is what placeholders and overrides depend on.
type system struct {
	goos string
	home string
}

// thisSystem leaves home empty where there is none: only a bundle that asks for it
// misses it.
func thisSystem() system {
	home, _ := os.UserHomeDir()
	return system{goos: runtime.GOOS, home: home}
}

// platform is the name manifests use.
func (s system) platform() string {
	if s.goos == "windows" {
		return "win32"
	}
	return s.goos
}

func (s system) separator() string {
	if s.goos == "windows" {
		return `\`
	}
	return "/"
}
