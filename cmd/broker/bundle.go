package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"mcpbroker/ingress/bundle"
)

func (p *program) bundleCommand() *cli.Command {
	return &cli.Command{
		Name:  "bundle",
		Usage: "verify, inspect and sign .mcpb bundles",
		Subcommands: []*cli.Command{
			{
				Name:      "verify",
				Usage:     "check that a key vouches for a bundle, and that it is sound",
				ArgsUsage: "FILE",
				Description: "Accepts what 'broker run' accepts: a detached signature (FILE.sig), or the one a packer embedded.\n" +
					"Exits 0 when the bundle is accepted, 1 otherwise. Flags may also follow the file.",
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "public-key", Usage: "PEM `FILE` with the public key or certificate"},
					&cli.StringFlag{Name: "signature", Usage: "`FILE` with the detached signature; the embedded one does not count then"},
				},
				Action: p.verifyBundle,
			},
			{
				Name:      "inspect",
				Usage:     "show what is in a bundle, without verifying it",
				ArgsUsage: "FILE",
				Flags:     []cli.Flag{outputFlag()},
				Action:    p.inspectBundle,
			},
			{
				Name:        "sign",
				Usage:       "write the detached signature of a bundle",
				ArgsUsage:   "FILE",
				Description: "Flags may also follow the file.",
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "key", Usage: "PEM `FILE` with the private key"},
					&cli.StringFlag{Name: "out", Usage: "write to `SIG` instead of FILE.sig"},
				},
				Action: p.signBundle,
			},
			{
				Name:        "keygen",
				Usage:       "make a key pair to sign bundles with",
				ArgsUsage:   "[DIR]",
				Description: "Writes " + bundle.PrivateKeyFile + " and " + bundle.PublicKeyFile + " (Ed25519). Files that exist are never replaced.",
				Action:      p.bundleKeygen,
			},
		},
		Action: func(c *cli.Context) error {
			if name := c.Args().First(); name != "" {
				return refuse(c, fmt.Sprintf("unknown command %q; known are verify, inspect, sign and keygen", name))
			}
			return refuse(c, "name a command: verify, inspect, sign or keygen")
		},
	}
}

func (p *program) verifyBundle(c *cli.Context) error {
	file, err := bundleFile(c)
	if err != nil {
		return err
	}
	if c.String("public-key") == "" {
		return refuse(c, "name the key that has to vouch for the bundle with --public-key")
	}
	ctx, release := interruptible(c)
	defer release()
	v, err := bundle.Verify(ctx, bundle.Options{Path: file, PublicKey: c.String("public-key"), Signature: c.String("signature")})
	if err != nil {
		return bundleError(file, err)
	}
	fmt.Fprintf(p.stdout, "%s: ok, %s, %s\n", file, bundleTitle(v.Manifest), plural(v.Files, "file"))
	describeSignature(p.stdout, v.Signature)
	return nil
}

func (p *program) signBundle(c *cli.Context) error {
	file, err := bundleFile(c)
	if err != nil {
		return err
	}
	if c.String("key") == "" {
		return refuse(c, "name the private key with --key; 'broker bundle keygen' makes one")
	}
	ctx, release := interruptible(c)
	defer release()
	s, err := bundle.Sign(ctx, bundle.SignOptions{Path: file, Key: c.String("key"), Out: c.String("out")})
	if err != nil {
		return bundleError(file, err)
	}
	fmt.Fprintf(p.stdout, "%s: signed with %s\nwrote %s\n", file, s.Key, s.File)
	return nil
}

func (p *program) bundleKeygen(c *cli.Context) error {
	args := c.Args().Slice()
	if len(args) > 1 {
		return refuse(c, fmt.Sprintf("unexpected argument %q", args[1]))
	}
	pair, err := bundle.Keygen(c.Args().First())
	if err != nil {
		return cli.Exit("broker bundle keygen: "+err.Error(), 1)
	}
	fmt.Fprintf(p.stdout, "%s\nwrote %s (private: keep it off the machines that run bundles)\nwrote %s (publicKey of mcpbBundles)\n",
		pair.Key, pair.Private, pair.Public)
	return nil
}

func (p *program) inspectBundle(c *cli.Context) error {
	file, err := bundleFile(c)
	if err != nil {
		return err
	}
	asJSON, err := wantsJSON(c)
	if err != nil {
		return err
	}
	ctx, release := interruptible(c)
	defer release()
	r, err := bundle.Inspect(ctx, bundle.Options{Path: file})
	if err != nil {
		return bundleError(file, err)
	}
	if asJSON {
		return printJSON(p.stdout, encode(reportOf(file, r)))
	}
	printReport(p.stdout, file, r)
	return nil
}

// bundleFile returns the one argument. Its flags may stand on either side.
func bundleFile(c *cli.Context) (string, error) {
	names, err := interspersed(c)
	switch {
	case err != nil:
		return "", err
	case len(names) == 0 || names[0] == "":
		return "", refuse(c, "a file is missing")
	case len(names) > 1:
		return "", refuse(c, fmt.Sprintf("unexpected argument %q", names[1]))
	}
	return names[0], nil
}

func interruptible(c *cli.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM)
}

func bundleError(file string, err error) error {
	if errors.Is(err, context.Canceled) {
		return errInterrupted
	}
	return cli.Exit(fmt.Sprintf("%s: %s.", file, safeText(err.Error())), 1)
}

func bundleTitle(m bundle.Manifest) string {
	return oneLine(strings.TrimSpace(m.Name + " " + m.Version))
}

func describeSignature(w io.Writer, s bundle.Signature) {
	fmt.Fprintf(w, "signature  %s", s.Method)
	if s.File != "" {
		fmt.Fprintf(w, " (%s)", s.File)
	}
	fmt.Fprintf(w, "\nkey        %s\n", s.Key)
	if s.Method == bundle.Embedded {
		fmt.Fprintf(w, "signer     %s\nissuer     %s\nvalid      %s to %s\n", oneLine(s.Subject), oneLine(s.Issuer),
			s.NotBefore.UTC().Format(time.DateOnly), s.NotAfter.UTC().Format(time.DateOnly))
	}
}

// printReport shows what the author of a bundle wrote, which nothing has vouched
// for yet.
func printReport(w io.Writer, file string, r *bundle.Report) {
	m := r.Manifest
	facts := table{{"bundle", bundleTitle(m)}}
	add := func(name, text string) {
		if text != "" {
			facts.add(name, text)
		}
	}
	if m.DisplayName != m.Name {
		add("title", m.DisplayName)
	}
	add("about", m.Description)
	add("author", m.Author)
	add("license", m.License)
	add("manifest", m.ManifestVersion)
	add("server", strings.TrimSpace(m.Server.Type+" "+m.Server.EntryPoint))
	if c := m.Server.MCPConfig; c != nil {
		add("command", strings.Join(append([]string{c.Command}, c.Args...), " "))
		add("variables", strings.Join(slices.Sorted(maps.Keys(c.Env)), ", "))
		add("overrides", strings.Join(slices.Sorted(maps.Keys(c.Overrides)), ", "))
	}
	add("platforms", strings.Join(m.Platforms, ", "))
	for _, name := range slices.Sorted(maps.Keys(m.Runtimes)) {
		add("runtime", name+" "+m.Runtimes[name])
	}
	add("tools", strings.Join(m.Tools, ", "))
	add("size", fmt.Sprintf("%d bytes, %d unpacked", r.Size, r.Unpacked))
	add("sha256", r.SHA256)
	facts.write(w)
	printSignatures(w, file, r)
	printOptions(w, m)
	fmt.Fprintln(w, "\nfiles")
	var files table
	for _, f := range r.Files {
		files.add(f.Mode.String(), fmt.Sprint(f.Size), f.Name)
	}
	files.write(w)
}

func printSignatures(w io.Writer, file string, r *bundle.Report) {
	fmt.Fprintln(w, "\nsignatures")
	switch {
	case r.EmbeddedErr != nil:
		fmt.Fprintf(w, "embedded signature is refused: %s\n", safeText(r.EmbeddedErr.Error()))
	case r.Embedded != nil:
		describeSignature(w, *r.Embedded)
	case r.Detached == "":
		fmt.Fprintln(w, "none; 'broker bundle sign' makes one")
		return
	}
	if r.Detached != "" {
		fmt.Fprintf(w, "detached   %s\n", r.Detached)
	}
	fmt.Fprintf(w, "whether to trust them: broker bundle verify %s --public-key KEY\n", filepath.ToSlash(file))
}

func printOptions(w io.Writer, m bundle.Manifest) {
	if len(m.UserConfig) == 0 {
		return
	}
	fmt.Fprintln(w, "\nuserConfig")
	rows := table{{"KEY", "TYPE", "NEEDS", "DEFAULT", "TITLE"}}
	for _, key := range slices.Sorted(maps.Keys(m.UserConfig)) {
		o := m.UserConfig[key]
		kind := o.Type
		if o.Multiple {
			kind += " list"
		}
		var notes []string
		if o.Required {
			notes = append(notes, "required")
		}
		if o.Sensitive {
			notes = append(notes, "sensitive")
		}
		rows.add(key, kind, strings.Join(notes, ", "), defaultText(o), o.Title)
	}
	rows.write(w)
}

func defaultText(o bundle.UserOption) string {
	switch {
	case o.Default == nil:
		return "-"
	case o.Sensitive:
		return "(set)"
	}
	return fmt.Sprint(o.Default)
}
