package mcpbroker

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/upstreams"
	"mcpbroker/config"
	"mcpbroker/ingress/bundle"
	"mcpbroker/ingress/remote"
	"mcpbroker/ingress/stdio"
)

// launcher resolves the settings of an upstream, for each attempt anew, and
// starts it. What cannot be resolved fails that one attempt (spec 06).
type launcher struct {
	run   *running
	dir   string // of the configuration
	limit func(slot string) int
}

type start func(ctx context.Context, owner msg.Ref, gen uint64) (cancel func(), err error)

// later resolves and starts beside the actor: files are read on the way.
func (l launcher) later(begin start) upstreams.Starter {
	return func(owner msg.Ref, gen uint64) func() {
		ctx, giveUp := context.WithCancel(context.Background())
		a := &attempt{giveUp: giveUp}
		l.run.sys.Go(func() {
			cancel, err := begin(ctx, owner, gen)
			if err != nil {
				owner.Send(&msg.UpstreamEnded{Gen: gen, Err: err})
				return
			}
			a.started(cancel)
		})
		return a.cancel
	}
}

// attempt is one start, which may be cancelled before it has got anywhere.
type attempt struct {
	giveUp func()

	mu        sync.Mutex
	running   func() // cancels the driver; nil until there is one
	cancelled bool
}

func (a *attempt) started(cancel func()) {
	a.mu.Lock()
	a.running = cancel
	late := a.cancelled
	a.mu.Unlock()
	if late {
		cancel()
	}
}

func (a *attempt) cancel() {
	a.giveUp()
	a.mu.Lock()
	running := a.running
	a.cancelled = true
	a.mu.Unlock()
	if running != nil {
		running()
	}
}

func (l launcher) child(s config.StdioUpstream, owner msg.Ref, gen uint64) (func(), error) {
	e := l.expander(&s.Upstream)
	cfg := stdio.Config{
		Name: s.Name, Command: e.text("command", s.Command), Args: e.list("args", s.Args),
		Dir: e.text("cwd", s.Cwd), Limit: l.limit(s.Name), Grace: s.GraceMs.Duration(),
	}
	env := e.environment(s.EnvFile, s.Env)
	if e.err != nil {
		return nil, e.err
	}
	cfg.Env = childEnv(os.Environ(), s.InheritEnv, env)
	cfg.Secrets = e.confidential(cfg.Env)
	return l.run.children.Start(cfg, owner, gen), nil
}

func (l launcher) remote(ctx context.Context, s config.MCPServer, owner msg.Ref, gen uint64) (func(), error) {
	e := l.expander(&s.Upstream)
	cfg := remote.Config{
		Name: s.Name, URL: e.text("url", s.URL), Transport: s.Transport,
		Headers: e.table("headers", s.Headers), Limit: l.limit(s.Name),
	}
	if !s.OAuth.IsZero() {
		cfg.Auth.ClientCredentials = &remote.ClientCredentials{
			TokenURL: e.text("oauth.tokenUrl", s.OAuth.TokenURL), ClientID: e.text("oauth.clientId", s.OAuth.ClientID),
			ClientSecret: e.text("oauth.clientSecret", s.OAuth.ClientSecret), Scopes: e.list("oauth.scopes", s.OAuth.Scopes),
		}
	}
	if e.err != nil {
		return nil, e.err
	}
	if err := l.run.notOurs(ctx, cfg.URL); err != nil {
		return nil, err
	}
	return l.run.remotes.Start(cfg, owner, gen), nil
}

func (l launcher) bundle(ctx context.Context, b config.MCPBBundle, owner msg.Ref, gen uint64) (func(), error) {
	e := l.expander(&b.Upstream)
	env := e.environment("", b.Env)
	given := answers(b.UserConfig, e.text)
	if e.err != nil {
		return nil, e.err
	}
	launch, err := bundle.Open(ctx, bundle.Options{
		Name: b.Name, Path: absolute(l.dir, b.Path), PublicKey: absolute(l.dir, b.PublicKey), Signature: absolute(l.dir, b.Signature),
		UserConfig: given, BaseDir: l.dir, CacheDir: filepath.Join(l.dir, ".cache", "mcpb"),
	})
	if err != nil {
		return nil, err
	}
	merged := maps.Clone(launch.Env)
	if merged == nil {
		merged = map[string]string{}
	}
	maps.Copy(merged, env)
	cfg := stdio.Config{
		Name: b.Name, Command: launch.Command, Args: launch.Args, Dir: launch.Dir,
		Env: childEnv(os.Environ(), b.InheritEnv, merged), Limit: l.limit(b.Name), Grace: b.GraceMs.Duration(),
	}
	cfg.Secrets = append(e.confidential(cfg.Env), launch.Secrets...)
	return l.run.children.Start(cfg, owner, gen), nil
}

func absolute(dir, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return filepath.Join(dir, path)
	}
	return abs
}

// expander expands the texts of one upstream and keeps the first failure, with
// the name of its field.
type expander struct {
	variables config.Variables
	err       error
	secrets   []string // values to be kept out of texts
}

func (l launcher) expander(u *config.Upstream) *expander {
	e := &expander{variables: config.Variables{Vars: u.Vars, Lookup: os.LookupEnv, Dir: l.dir}}
	e.variables.Resolved = func(name, value string) {
		if strings.HasPrefix(name, "file:") {
			e.confide(value)
			return
		}
		e.secrets = append(e.secrets, secretsIn(name, value)...)
	}
	return e
}

// confide takes a value for a secret because of where it is from, if it is long enough
// to be none of the words of a text.
func (e *expander) confide(value string) {
	const short = 8
	if len(value) >= short {
		e.secrets = append(e.secrets, value)
	}
}

// confidential are the secrets of a whole environment, and those it was made of.
func (e *expander) confidential(environ []string) []string {
	secrets := e.secrets
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		secrets = append(secrets, secretsIn(name, value)...)
	}
	return secrets
}

func (e *expander) text(field, s string) string {
	out, err := config.Expand(s, e.variables)
	e.fault(field, err)
	return out
}

func (e *expander) fault(field string, err error) {
	if err != nil && e.err == nil {
		e.err = unresolvedError{fmt.Errorf("%s: %w", field, err)}
	}
}

// unresolvedError lets the actors, which know nothing of configurations, tell it
// from other causes.
type unresolvedError struct{ error }

// Is implements the interface of errors.Is.
func (unresolvedError) Is(target error) bool { return target == msg.ErrUnresolved }

// Unwrap implements the interface of errors.Unwrap.
func (e unresolvedError) Unwrap() error { return e.error }

func (e *expander) list(field string, list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = e.text(fmt.Sprintf("%s[%d]", field, i), s)
	}
	return out
}

func (e *expander) table(field string, table map[string]string) map[string]string {
	out := make(map[string]string, len(table))
	for _, name := range slices.Sorted(maps.Keys(table)) {
		out[name] = e.text(field+"."+name, table[name])
	}
	return out
}

// environment is the file's variables with those of the table over them.
func (e *expander) environment(file string, table map[string]string) map[string]string {
	env := map[string]string{}
	if file != "" {
		read, err := readEnvFile(file)
		e.fault("envFile", err)
		maps.Copy(env, e.table("envFile", read))
		for _, value := range env {
			e.confide(value)
		}
	}
	maps.Copy(env, e.table("env", table))
	return env
}

// answers expands the texts among the answers for a bundle with text, which is told the
// name of each.
func answers(given map[string]any, text func(setting, s string) string) map[string]any {
	out := make(map[string]any, len(given))
	for _, name := range slices.Sorted(maps.Keys(given)) {
		switch v := given[name].(type) {
		case string:
			out[name] = text("userConfig."+name, v)
		case []any:
			list := slices.Clone(v)
			for i, item := range v {
				if s, ok := item.(string); ok {
					list[i] = text(fmt.Sprintf("userConfig.%s[%d]", name, i), s)
				}
			}
			out[name] = list
		default:
			out[name] = v
		}
	}
	return out
}
