package bundle

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// try resolves a manifest on Linux, in /b, for a user at /home/u.
func try(t *testing.T, manifest string, o Options) (*Launch, error) {
	t.Helper()
	return tryOn(t, system{goos: "linux", home: "/home/u"}, manifest, o)
}

func tryOn(t *testing.T, sys system, manifest string, o Options) (*Launch, error) {
	t.Helper()
	m, err := parseManifest([]byte(manifest))
	if err != nil {
		return nil, err
	}
	r := resolver{manifest: m, sys: sys, dir: "/b", has: func(name string) bool { return name == "bin/run" || name == "bin/win.exe" }}
	return r.resolve(o)
}

// server makes a manifest of an mcp_config and a user_config.
func server(config, user string) string {
	if user == "" {
		user = "{}"
	}
	return `{"manifest_version":"0.2","name":"x","server":{"type":"node","mcp_config":` + config + `},"user_config":` + user + `}`
}

// command shows a launch in one line.
func command(l *Launch) string {
	var b strings.Builder
	for _, part := range append([]string{l.Command}, l.Args...) {
		b.WriteString("[" + part + "]")
	}
	env, err := json.Marshal(l.Env)
	if err == nil && l.Env != nil {
		b.Write(env)
	}
	return b.String()
}

// spec 03 4.3 items 5 to 8, spec 05 section 7.
func TestPlaceholders(t *testing.T) {
	const (
		list   = `{"d":{"type":"directory","multiple":true}}`
		text   = `{"k":{"type":"string"}}`
		needed = `{"k":{"type":"string","required":true}}`
	)
	tests := []struct {
		name, config, user string
		given              map[string]any
		want               string // a command, or an error
	}{
		{"plain", `{"command":"node"}`, "", nil, "[node]"},
		{"directory", `{"command":"node","args":["${__dirname}/a","${__dirname}"]}`, "", nil, "[node][/b/a][/b]"},
		{"system", `{"command":"n","args":["${HOME}","${DESKTOP}","${DOCUMENTS}","${DOWNLOADS}","a${/}b${pathSeparator}c"]}`, "", nil,
			"[n][/home/u][/home/u/Desktop][/home/u/Documents][/home/u/Downloads][a/b/c]"},
		{"unknown stays", `{"command":"n","args":["${NOPE}","${","$}","${}","$HOME","${ HOME}","a}b"]}`, "", nil,
			"[n][${NOPE}][${][$}][${}][$HOME][${ HOME}][a}b]"},
		{"one pass", `{"command":"n","args":["${user_config.k}","x${user_config.k}"]}`, text, map[string]any{"k": "${HOME}$&$1"},
			"[n][${HOME}$&$1][x${HOME}$&$1]"},
		{"list", `{"command":"n","args":["a","${user_config.d}","z"]}`, list, map[string]any{"d": []any{"/1", "/2"}}, "[n][a][/1][/2][z]"},
		{"list of one", `{"command":"n","args":["${user_config.d}"]}`, list, map[string]any{"d": "/1"}, "[n][/1]"},
		{"empty list", `{"command":"n","args":["a","${user_config.d}","z"]}`, list, map[string]any{"d": []any{}}, "[n][a][z]"},
		{"list in a text", `{"command":"n","args":["--d=${user_config.d}"]}`, list, map[string]any{"d": []any{"/1"}},
			`placeholder "${user_config.d}" is multi-valued and cannot be used here`},
		{"list twice", `{"command":"n","args":["${user_config.d}${user_config.d}"]}`, list, map[string]any{"d": []any{"/1"}},
			`placeholder "${user_config.d}" is multi-valued and cannot be used here`},
		{"list in env", `{"command":"n","env":{"A":"${user_config.d}"}}`, list, map[string]any{"d": []any{"/1"}},
			`placeholder "${user_config.d}" is multi-valued and cannot be used here`},
		{"list as command", `{"command":"${user_config.d}"}`, list, map[string]any{"d": []any{"/1"}},
			`placeholder "${user_config.d}" is multi-valued and cannot be used here`},
		{"missing", `{"command":"n","args":["${user_config.k}"]}`, "", nil, `missing user_config value: "k"`},
		{"missing in a text", `{"command":"n","args":["a${user_config.k}"]}`, "", nil, `missing user_config value: "k"`},
		{"missing in env", `{"command":"n","env":{"A":"${user_config.k}"}}`, "", nil, `missing user_config value: "k"`},
		{"required", `{"command":"n"}`, needed, nil, `missing user_config value: "k"`},
		{"required but empty", `{"command":"n"}`, needed, map[string]any{"k": ""}, `missing user_config value: "k"`},
		{"two problems", `{"command":"n"}`, `{"b":{"type":"number"},"a":{"required":true}}`, map[string]any{"b": "x"},
			`missing user_config value: "a"; user_config "b" must be a number`},
		{"optional", `{"command":"n","args":["a","${user_config.k}","b${user_config.k}"],"env":{"A":"${user_config.k}","B":"b${user_config.k}"}}`,
			text, nil, `[n][a][b]{"B":"b"}`},
		{"optional, empty", `{"command":"n","args":["a","${user_config.k}"],"env":{"A":"${user_config.k}"}}`,
			text, map[string]any{"k": ""}, `[n][a][]{"A":""}`},
		{"undeclared", `{"command":"n","args":["${user_config.k}","${user_config.l}"]}`, "",
			map[string]any{"k": true, "l": []any{int64(1), 2.5}}, "[n][true][1][2.5]"},
		{"undeclared list in a text", `{"command":"n","args":["x${user_config.l}"]}`, "", map[string]any{"l": []any{}},
			`placeholder "${user_config.l}" is multi-valued and cannot be used here`},
		{"unused", `{"command":"n"}`, text, map[string]any{"kk": "x"}, `the bundle knows no user_config value "kk"`},
		{"unset on purpose", `{"command":"n"}`, text, map[string]any{"kk": nil}, "[n]"},
		{"in the command", `{"command":"${user_config.k}","args":[]}`, text, map[string]any{"k": "deno"}, "[deno]"},
		{"no command", `{"args":[]}`, "", nil, "manifest mcp_config has no command"},
		{"empty command", `{"command":" "}`, "", nil, "manifest mcp_config has no command"},
		{"command not set", `{"command":"${user_config.k}"}`, text, nil, "manifest mcp_config has no command"},
		{"command of the bundle", `{"command":"bin/run"}`, "", nil, "[/b/bin/run]"},
		{"the same", `{"command":"./bin/run"}`, "", nil, "[/b/bin/run]"},
		{"the same, absolute", `{"command":"${__dirname}/bin/run"}`, "", nil, "[/b/bin/run]"},
		{"command elsewhere", `{"command":"/usr/bin/node"}`, "", nil, "[/usr/bin/node]"},
		{"command missing", `{"command":"bin/walk"}`, "", nil, `the command "bin/walk" is not in the bundle`},
		{"command outside", `{"command":"../bin/run"}`, "", nil, `the command "../bin/run" leaves the bundle`},
		{"command outside, absolute", `{"command":"${__dirname}/../run"}`, "", nil, `the command "${__dirname}/../run" leaves the bundle`},
		{"windows only", `{"command":"bin/win"}`, "", nil, `the command "bin/win" is not in the bundle`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l, err := try(t, server(tt.config, tt.user), Options{UserConfig: tt.given})
			got := errorText(err)
			if err == nil {
				got = command(l)
			}
			if got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// spec 03 4.3 item 6: command and args replace, env merges over.
func TestPlatformOverrides(t *testing.T) {
	manifest := server(`{"command":"a","args":["1"],"env":{"A":"1","B":"1"},"platform_overrides":{
		"win32":{"command":"w","env":{"B":"2","C":"2"}},"darwin":{"args":[]},"linux":{"args":["2"],"command":""}}}`, "")
	for goos, want := range map[string]string{
		"windows": `[w][1]{"A":"1","B":"2","C":"2"}`,
		"darwin":  `[a]{"A":"1","B":"1"}`,
		"linux":   `[a][2]{"A":"1","B":"1"}`,
		"freebsd": `[a][1]{"A":"1","B":"1"}`,
	} {
		l, err := tryOn(t, system{goos: goos}, manifest, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := command(l); got != want {
			t.Errorf("%s: %s, want %s", goos, got, want)
		}
	}
	l, err := tryOn(t, system{goos: "windows"}, server(`{"command":"bin/win","args":["a${/}b"]}`, ""), Options{})
	if err != nil || command(l) != `[/b/bin/win.exe][a\b]` {
		t.Errorf("%+v, %v", l, err)
	}
	_, err = tryOn(t, system{goos: "linux"}, server(`{"command":"n","args":["${HOME}"]}`, ""), Options{})
	refused(t, err, ErrUserConfig, "the home directory is unknown, which ${HOME} stands for")
}

// spec 05 section 7: type uv may leave out mcp_config.
func TestUV(t *testing.T) {
	l, err := try(t, `{"manifest_version":"0.4","server":{"type":"uv","entry_point":"src/server.py"}}`, Options{})
	if err != nil || command(l) != "[uv][run][--directory][/b][src/server.py]" {
		t.Errorf("%+v, %v", l, err)
	}
	l, err = try(t, `{"manifest_version":"0.4","server":{"type":"uv","entry_point":"s.py","mcp_config":{"command":"uvx"}}}`, Options{})
	if err != nil || command(l) != "[uvx]" {
		t.Errorf("%+v, %v", l, err)
	}
}

func TestUserConfigTypes(t *testing.T) {
	var number json.Number = "10"
	tests := []struct {
		name, option string
		given        any
		want         string // of the value, or an error
	}{
		{"string", `"type":"string"`, "a b", "a b"},
		{"number as string", `"type":"string"`, int64(3), "3"},
		{"boolean as string", `"type":"string"`, true, "true"},
		{"time as string", `"type":"string"`, time.Time{}, `user_config "k" must be a string`},
		{"table as string", `"type":"string"`, map[string]any{}, `user_config "k" must be a string`},
		{"list as string", `"type":"string"`, []any{"a"}, `user_config "k" takes one value, not a list`},
		{"strings as string", `"type":"string"`, []string{"a"}, `user_config "k" takes one value, not a list`},
		{"number in a list", `"type":"string","multiple":true`, []any{"a", map[string]any{}}, `user_config "k" must be a string`},
		{"unknown type", `"type":"color"`, "red", "red"},
		{"integer", `"type":"number"`, int64(9007199254740993), "9007199254740993"},
		{"int", `"type":"number"`, 5, "5"},
		{"float", `"type":"number"`, 2.5, "2.5"},
		{"whole float", `"type":"number"`, 3000.0, "3000"},
		{"large float", `"type":"number"`, 1e21, "1000000000000000000000"},
		{"JSON number", `"type":"number"`, number, "10"},
		{"number in a string", `"type":"number"`, " 42 ", "42"},
		{"no number", `"type":"number"`, "4x", `user_config "k" must be a number`},
		{"empty number", `"type":"number"`, "", `user_config "k" must be a number`},
		{"not a number", `"type":"number"`, "NaN", `user_config "k" must be a number`},
		{"boolean as number", `"type":"number"`, true, `user_config "k" must be a number`},
		{"least", `"type":"number","min":2,"max":4`, 2, "2"},
		{"below", `"type":"number","min":2,"max":4`, 1.5, `user_config "k" must be at least 2`},
		{"most", `"type":"number","min":2,"max":4`, "4", "4"},
		{"above", `"type":"number","min":2,"max":4.5`, int64(5), `user_config "k" must be at most 4.5`},
		{"true", `"type":"boolean"`, true, "true"},
		{"false", `"type":"boolean"`, false, "false"},
		{"boolean in a string", `"type":"boolean"`, "false", "false"},
		{"no boolean", `"type":"boolean"`, "yes", `user_config "k" must be true or false`},
		{"number as boolean", `"type":"boolean"`, 1, `user_config "k" must be true or false`},
		{"absolute", `"type":"directory"`, "/d", "/d"},
		{"relative", `"type":"directory"`, "d/../e", "/base/e"},
		{"file", `"type":"file"`, "f", "/base/f"},
		{"number as file", `"type":"file"`, 1, `user_config "k" must be a path, as a string`},
		{"no path", `"type":"file","required":true`, "", `missing user_config value: "k"`},
		{"optional path left empty", `"type":"file"`, "", ""},

		{"default", `"type":"string","default":"d"`, nil, "d"},
		{"default satisfies", `"type":"string","default":"d","required":true`, nil, "d"},
		{"default for an empty value", `"type":"string","default":"d","required":true`, "", "d"},
		{"value over default", `"type":"string","default":"d"`, "", ""},
		{"default number", `"type":"number","default":3000`, nil, "3000"},
		{"default large number", `"type":"number","default":12345678901234567890`, nil, "12345678901234567890"},
		{"default out of bounds", `"type":"number","default":1,"min":2`, nil, `user_config "k" must be at least 2`},
		{"default boolean", `"type":"boolean","default":false`, nil, "false"},
		{"default expands", `"type":"directory","default":"${HOME}/x${/}${user_config.k}"`, nil, "/home/u/x/${user_config.k}"},
		{"default of a string expands", `"type":"string","default":"${DOCUMENTS}"`, nil, "/home/u/Documents"},
		{"value does not expand", `"type":"string"`, "${HOME}", "${HOME}"},
		{"empty default", `"type":"directory","default":""`, nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := Options{UserConfig: map[string]any{"k": tt.given}, BaseDir: "/base"}
			l, err := try(t, server(`{"command":"n","env":{"K":"x${user_config.k}"}}`, `{"k":{`+tt.option+`}}`), o)
			if strings.HasPrefix(tt.want, "user_config ") || strings.HasPrefix(tt.want, "missing ") {
				if strings.Contains(tt.option, "multiple") && err == nil {
					t.Fatal("accepted")
				}
				refused(t, err, ErrUserConfig, tt.want)
				return
			}
			if err != nil || l.Env["K"] != "x"+tt.want {
				t.Errorf("%+v, %v; want %q", l, err, tt.want)
			}
		})
	}
	l, err := try(t, server(`{"command":"n","args":["${user_config.d}"]}`, `{"d":{"type":"directory","multiple":true,"default":["${HOME}/a","b"]}}`),
		Options{BaseDir: "/base"})
	if err != nil || command(l) != "[n][/home/u/a][/base/b]" {
		t.Errorf("list by default: %+v, %v", l, err)
	}
	l, err = try(t, server(`{"command":"n","args":["${user_config.d}"]}`, `{"d":{"type":"file"}}`), Options{UserConfig: map[string]any{"d": "rel"}})
	if err != nil || command(l) != "[n][rel]" {
		t.Errorf("without a base: %+v, %v", l, err)
	}
}

// What the user gives is in no error, and what the manifest calls sensitive can be
// masked.
func TestSecrets(t *testing.T) {
	const user = `{"token":{"type":"string","sensitive":true},"tokens":{"type":"string","sensitive":true,"multiple":true},"n":{"type":"number"}}`
	config := `{"command":"n","args":["--t=${user_config.token}","${user_config.tokens}"]}`
	given := map[string]any{"token": "s3cret", "tokens": []any{"s3cret-long", ""}}
	l, err := try(t, server(config, user), Options{UserConfig: given})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"s3cret-long", "s3cret"}, l.Secrets); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}
	if got := l.Mask(strings.Join(l.Args, " ")); got != "--t=*** *** " {
		t.Errorf("masked: %q", got)
	}
	for _, change := range []map[string]any{
		{"token": []any{"s3cret"}}, {"token": map[string]any{"a": "s3cret"}}, {"n": "s3cret"}, {"n": true, "x": "s3cret"}, {"tokens": []any{[]any{"s3cret"}}},
	} {
		if _, err := try(t, server(config, user), Options{UserConfig: change}); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%v: %v", change, err)
		}
	}
	broken := `{"command":"${user_config.token}/x"}`
	if _, err := try(t, server(broken, user), Options{UserConfig: given}); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("error %v", err)
	}
}
