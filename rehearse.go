package mcpbroker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"

	"mcpbroker/config"
	"mcpbroker/ingress/bundle"
	"mcpbroker/ingress/remote"
	"mcpbroker/ingress/stdio"
)

// Rehearsal is how the start of one upstream would go here and now.
type Rehearsal struct {
	Slot string
	Kind string // stdio, bundle, or the transport of a remote server
	// Found is what the start would use: the file of a command or of a bundle, or the
	// host and port of a server. Empty where something is missing.
	Found   string
	Missing []Missing
}

// Missing is what a start would fail for.
type Missing struct {
	Setting string // the key to look at, such as command or env.TOKEN
	// Err says what is missing, and never a value that was put in for ${NAME}. It wraps
	// [config.ErrUnresolved] where ${...} stands for nothing.
	Err error
	// Unreached: an address does not answer, which may be for now.
	Unreached bool
}

const (
	reachTimeout = 2 * time.Second // for a connection to a remote server
	reachAtOnce  = 16              // such connections at the same time
)

// Rehearse looks for what the upstreams of c need: variables and files, commands and
// directories, bundles that their keys vouch for, and whether the addresses of remote
// servers take a connection within 2 s. It starts nothing, sends nothing, and unpacks
// bundles into a temporary directory. The order is that of the lists.
func Rehearse(ctx context.Context, c *config.Config) []Rehearsal {
	own := *c
	if own.Validate() != nil {
		return nil // what is wrong with it is told elsewhere
	}
	var rehearsals []func(*rehearsal)
	var all []Rehearsal
	add := func(u *config.Upstream, kind string, rehearse func(*rehearsal)) {
		all = append(all, Rehearsal{Slot: u.Name, Kind: kind})
		rehearsals = append(rehearsals, func(r *rehearsal) { r.variables.Vars = u.Vars; rehearse(r) })
	}
	for _, s := range own.StdioUpstreams {
		add(&s.Upstream, "stdio", func(r *rehearsal) { r.child(&s) })
	}
	for _, s := range own.MCPServers {
		add(&s.Upstream, s.Transport, func(r *rehearsal) { r.remote(ctx, &s) })
	}
	for _, b := range own.MCPBBundles {
		add(&b.Upstream, "bundle", func(r *rehearsal) { r.bundle(ctx, &b) })
	}
	var working sync.WaitGroup
	places := make(chan struct{}, reachAtOnce)
	for i := range all {
		working.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			r := &rehearsal{Rehearsal: &all[i], variables: config.Variables{Lookup: os.LookupEnv, Dir: baseDir(&own)}}
			rehearsals[i](r)
			if len(r.Missing) > 0 {
				r.Found = ""
			}
		})
	}
	working.Wait()
	return all
}

type rehearsal struct {
	*Rehearsal
	variables config.Variables
}

func (r *rehearsal) miss(setting string, err error) {
	if err != nil {
		r.Missing = append(r.Missing, Missing{Setting: setting, Err: err})
	}
}

func (r *rehearsal) text(setting, s string) string {
	out, err := config.Expand(s, r.variables)
	r.miss(setting, err)
	return out
}

func (r *rehearsal) list(setting string, list []string) {
	for i, s := range list {
		r.text(fmt.Sprintf("%s[%d]", setting, i), s)
	}
}

func (r *rehearsal) table(setting string, table map[string]string) map[string]string {
	out := make(map[string]string, len(table))
	for _, name := range slices.Sorted(maps.Keys(table)) {
		out[name] = r.text(setting+"."+name, table[name])
	}
	return out
}

func (r *rehearsal) child(s *config.StdioUpstream) {
	env := map[string]string{}
	if s.EnvFile != "" {
		read, err := readEnvFile(s.EnvFile)
		r.miss("envFile", err)
		env = r.table("envFile", read)
	}
	maps.Copy(env, r.table("env", s.Env))
	r.list("args", s.Args)
	before := len(r.Missing)
	command, dir := r.text("command", s.Command), r.text("cwd", s.Cwd)
	if dir != "" {
		r.miss("cwd", isDirectory(dir))
	}
	if len(r.Missing) > before {
		return
	}
	found, err := stdio.Lookup(command, dir, childEnv(os.Environ(), s.InheritEnv, env))
	r.Found = found
	r.miss("command", err)
}

func isDirectory(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return fileError(path, err)
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", path)
	}
	return nil
}

func isFile(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return fileError(path, err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", path)
	}
	return nil
}

// fileError is an error of the file system without the call.
func fileError(path string, err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return fmt.Errorf("%s: %w", path, err)
}

func (r *rehearsal) remote(ctx context.Context, s *config.MCPServer) {
	r.table("headers", s.Headers)
	if !s.OAuth.IsZero() {
		r.text("oauth.clientId", s.OAuth.ClientID)
		r.text("oauth.clientSecret", s.OAuth.ClientSecret)
		r.list("oauth.scopes", s.OAuth.Scopes)
		r.reach(ctx, "oauth.tokenUrl", s.OAuth.TokenURL)
	}
	if address, err := config.Expand(s.URL, r.variables); r.Kind == "" {
		if err != nil {
			address = s.URL
		}
		r.Kind = remote.TransportOf(address)
	}
	r.Found = r.reach(ctx, "url", s.URL)
}

// reach connects to the host of an address, or to the proxy in front of it.
func (r *rehearsal) reach(ctx context.Context, setting, address string) string {
	before := len(r.Missing)
	address = r.text(setting, address)
	if len(r.Missing) > before {
		return ""
	}
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		r.miss(setting, errors.New("it is no URL once its variables are put in"))
		return ""
	}
	through := ""
	if proxy, err := http.ProxyFromEnvironment(&http.Request{URL: asHTTP(u)}); err == nil && proxy != nil {
		through, u = "the proxy ", proxy
	}
	at := net.JoinHostPort(u.Hostname(), dialPort(u))
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", at)
	if err != nil {
		r.Missing = append(r.Missing, Missing{setting, fmt.Errorf("%s%s cannot be reached: %w", through, at, reason(ctx, err)), true})
		return ""
	}
	_ = conn.Close()
	return through + at
}

// reason leaves out what an error of the network repeats.
func reason(ctx context.Context, err error) error {
	var op *net.OpError
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("no connection within %s", reachTimeout)
	case errors.As(err, &op):
		return op.Err
	}
	return err
}

// asHTTP is the URL under which a proxy is asked for a WebSocket.
func asHTTP(u *url.URL) *url.URL {
	asked := *u
	switch u.Scheme {
	case "ws":
		asked.Scheme = "http"
	case "wss":
		asked.Scheme = "https"
	}
	return &asked
}

func dialPort(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https" || u.Scheme == "wss":
		return "443"
	}
	return "80"
}

func (r *rehearsal) bundle(ctx context.Context, b *config.MCPBBundle) {
	r.table("env", b.Env)
	given := answers(b.UserConfig, r.text)
	r.Found = b.Path
	for _, file := range []struct{ setting, path string }{{"path", b.Path}, {"publicKey", b.PublicKey}, {"signature", b.Signature}} {
		if file.path == "" {
			continue
		}
		r.miss(file.setting, isFile(file.path))
	}
	if len(r.Missing) == 0 {
		err := r.unpack(ctx, b, given)
		r.miss(settingBehind(err), err)
	}
}

// unpack does with a bundle all that its start does, elsewhere.
func (r *rehearsal) unpack(ctx context.Context, b *config.MCPBBundle, given map[string]any) error {
	dir, err := os.MkdirTemp("", "mcpb-")
	if err != nil {
		return fmt.Errorf("unpack the bundle: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	_, err = bundle.Open(ctx, bundle.Options{
		Path: b.Path, PublicKey: b.PublicKey, Signature: b.Signature, UserConfig: given, BaseDir: r.variables.Dir, CacheDir: dir,
	})
	return err
}

// settingBehind is the key that the refusal of a bundle is about.
func settingBehind(err error) string {
	switch {
	case errors.Is(err, bundle.ErrUserConfig):
		return "userConfig"
	case errors.Is(err, bundle.ErrKey):
		return "publicKey"
	case errors.Is(err, bundle.ErrNotFound), errors.Is(err, bundle.ErrSignature):
		return "signature"
	}
	return "path"
}
