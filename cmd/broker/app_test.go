package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"mcpbroker/config"
)

func TestVersion(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"--version"}, {"-v"}, {"--version", "run", "x"}} {
		b := newBench(t)
		b.expect(t, b.do(args...), 0, "mcp-broker 1.2.3\n", "")
	}
}

// spec 03 10.2 item 28: nothing on the command line is ignored.
func TestRefusedCommandLines(t *testing.T) {
	tests := []struct{ args, want string }{
		{"rnu", "broker: unknown command \"rnu\" (did you mean \"run\"?)\nSee 'broker --help'.\n"},
		{"frobnicate", "broker: unknown command \"frobnicate\"\nSee 'broker --help'.\n"},
		{"--verison", "broker: unknown flag --verison (did you mean --version?)\nSee 'broker --help'.\n"},
		{"--nope", "broker: unknown flag --nope\nSee 'broker --help'.\n"},
		{"run --prot 1", "broker run: unknown flag --prot (did you mean --port?)\nSee 'broker run --help'.\n"},
		{"run -heartbeet=1", "broker run: unknown flag --heartbeet (did you mean --heartbeat?)\nSee 'broker run --help'.\n"},
		{"run --port", "broker run: --port needs a value\nSee 'broker run --help'.\n"},
		{"run --demo=perhaps", "broker run: --demo \"perhaps\" must be true or false\nSee 'broker run --help'.\n"},
		{"status --timeout 5", "broker status: --timeout \"5\" must be a duration, such as 90s or 5m\nSee 'broker status --help'.\n"},
		{"logs files --lines many", "broker logs: --lines \"many\" must be an integer\nSee 'broker logs --help'.\n"},
		{"status -o", "broker status: -o needs a value\nSee 'broker status --help'.\n"},
		{"--url http://a status", "broker: --url stands behind its command\nSee 'broker --help'.\n"},
		{"--public-key x", "broker: --public-key stands behind its command\nSee 'broker --help'.\n"},
		{"run a.toml -- --port", "broker run: unexpected argument \"--port\"\nSee 'broker run --help'.\n"},
		{"check a.toml --port 1", "broker check: unknown flag --port\nSee 'broker check --help'.\n"},
		{"run a.toml --prot 1", "broker run: unknown flag --prot (did you mean --port?)\nSee 'broker run --help'.\n"},
		{"run a.toml --port", "broker run: --port needs a value\nSee 'broker run --help'.\n"},
		{"run a.toml b.toml", "broker run: unexpected argument \"b.toml\"\nSee 'broker run --help'.\n"},
		{"check --output xml", "broker check: --output \"xml\" must be text or json\nSee 'broker check --help'.\n"},
		{"version -o", "broker version: -o needs a value\nSee 'broker version --help'.\n"},
		{"check a b", "broker check: unexpected argument \"b\"\nSee 'broker check --help'.\n"},
		{"version x", "broker version: unexpected argument \"x\"\nSee 'broker version --help'.\n"},
		{"completion", "broker completion: name a shell: bash, zsh, fish or powershell\nSee 'broker completion --help'.\n"},
		{"completion tcsh", "broker completion: unknown shell \"tcsh\"; known are bash, zsh, fish and powershell\nSee 'broker completion --help'.\n"},
		{"completion bash x", "broker completion bash: unexpected argument \"x\"\nSee 'broker completion bash --help'.\n"},
		{"help nothing", "broker: unknown command \"nothing\"\nSee 'broker --help'.\n"},
		{"run --port eighty --log-format xml",
			"--port \"eighty\" must be an integer from 0 to 65535\n--log-format \"xml\" must be text or json\n" +
				"[mcp-broker] Cannot start: problems in the configuration: 2\n"},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			b := newBench(t)
			b.expect(t, b.do(strings.Fields(tt.args)...), 1, "", tt.want)
		})
	}
	b := newBench(t)
	b.expect(t, b.do("run", "", "--demo"), 1, "", "broker run: the file name is empty\nSee 'broker run --help'.\n")
	b = newBench(t)
	b.expect(t, b.do("run", ""), 1, "", "broker run: the file name is empty\nSee 'broker run --help'.\n")
}

func TestHelp(t *testing.T) {
	tests := []struct{ args, file string }{
		{"--help", "help.txt"}, {"", "help.txt"}, {"help", "help.txt"}, {"--help --version", "help.txt"},
		{"run --help", "help-run.txt"}, {"help run", "help-run.txt"}, {"help help", "help.txt"}, {"check --help", "help-check.txt"},
		{"run a.toml --help", "help-run.txt"}, {"run --port 1 a.toml --demo -h", "help-run.txt"}, {"check a.toml -h", "help-check.txt"},
		{"completion --help", "help-completion.txt"}, {"bridge --help", "help-bridge.txt"},
		{"status --help", "help-status.txt"}, {"get --help", "help-get.txt"}, {"get slots --help", "help-get-slots.txt"},
		{"get instances --help", "help-get-instances.txt"},
		{"describe --help", "help-describe.txt"}, {"describe slot --help", "help-describe-slot.txt"}, {"describe instance --help", "help-describe-instance.txt"},
		{"logs --help", "help-logs.txt"}, {"restart --help", "help-restart.txt"},
		{"diagnose --help", "help-diagnose.txt"}, {"guide --help", "help-guide.txt"},
		{"tools --help", "help-tools.txt"}, {"call --help", "help-call.txt"}, {"watch --help", "help-watch.txt"}, {"doctor --help", "help-doctor.txt"},
	}
	// The scenario command describes itself.
	scenario := regexp.MustCompile(`(?m)^   scenario .*\n`)
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			file := testdata(t, tt.file)
			b := newBench(t)
			if code := b.do(strings.Fields(tt.args)...); code != 0 || b.err.String() != "" {
				t.Errorf("exit code %d, standard error %q", code, b.err)
			}
			golden(t, file, scenario.ReplaceAllString(b.out.String(), ""))
		})
	}
}

func TestHelpListsEveryVariable(t *testing.T) {
	b := newBench(t)
	b.do("--help")
	for _, v := range config.EnvVars() {
		if !strings.Contains(b.out.String(), "\n   "+v.Name+" ") {
			t.Errorf("%s is missing", v.Name)
		}
	}
}

func TestCheck(t *testing.T) {
	b := newBench(t)
	writeFile(t, "good.toml", "port = 0\nallowedOrigins = ['https://a/']\n")
	b.expect(t, b.do("check", "good.toml"), 0, "good.toml: ok\n",
		"[mcp-broker] allowedOrigins entry \"https://a/\" matches no browser: origins are compared verbatim, "+
			"as scheme://host[:port] without a path or wildcard\n")

	b = newBench(t)
	writeFile(t, "bad.toml", "prot = 1\n[auth]\n")
	b.environ = []string{"MCP_BROKER_MAX_SLOTS=none"}
	b.expect(t, b.do("check", "bad.toml"), 1, "",
		"bad.toml:1:1: unknown key \"prot\" (did you mean \"port\"?)\nbad.toml:2:1: \"auth\" is not available yet\n"+
			"MCP_BROKER_MAX_SLOTS=\"none\" must be an integer from 1 to 2147483647\n")

	b = newBench(t)
	b.expect(t, b.do("check", "nowhere.toml"), 1, "",
		"[mcp-broker] Cannot use the config file at nowhere.toml: the file named on the command line does not exist. "+
			"The broker does not start without the security settings this file may hold: fix the file, "+
			"or name another one.\n")
}

// Without an argument it looks at what 'broker run' would read.
func TestCheckFindsTheFile(t *testing.T) {
	b := newBench(t)
	b.expect(t, b.do("check"), 0, "no file, the defaults and the environment: ok\n", "")
	b = newBench(t)
	writeFile(t, "broker.toml", "[[stdioUpstreams]]\nname = 'a'\ncommand = 'x'\nenabled = false\n[[stdioUpstreams]]\nname = 'b'\ncommand = 'x'\n")
	b.expect(t, b.do("check"), 0, "broker.toml: ok; not started (enabled = false): a\n", "")
	b = newBench(t)
	writeFile(t, "other.toml", "prt = 1\n")
	b.environ = []string{"MCP_BROKER_CONFIG=other.toml"}
	b.expect(t, b.do("check"), 1, "", "other.toml:1:1: unknown key \"prt\" (did you mean \"port\"?)\n")
	b = newBench(t)
	writeFile(t, "broker.toml", "[tls]\ncert = 'c'\nkey = 'k'\n")
	b.expect(t, b.do("check"), 1, "", "broker.toml:2:8: \"tls.cert\" cannot be read: c: no such file or directory\n"+
		"broker.toml:3:7: \"tls.key\" cannot be read: k: no such file or directory\n")
}

// What commands without a broker print for machines.
func TestOutputJSON(t *testing.T) {
	tests := []struct {
		args, file string
		code       int
		want       string
	}{
		{"check b.toml -o json", "allowedOrigins = ['a']\n[[mcpServers]]\nname = 'a'\nurl = 'http://x/'\nenabled = false\n", 0,
			`{"file":"b.toml","ok":true,"problems":[],"warnings":["[mcp-broker] allowedOrigins entry \"a\" matches no browser: origins are compared verbatim, ` +
				`as scheme://host[:port] without a path or wildcard"],"disabled":["a"]}`},
		{"check -o json b.toml", "prt = 1\n", 1,
			`{"ok":false,"problems":[{"file":"b.toml","line":1,"column":1,"message":"unknown key \"prt\" (did you mean \"port\"?)"}],"warnings":[],"disabled":[]}`},
		{"check -o json gone.toml", "", 1,
			`{"ok":false,"problems":[{"file":"gone.toml","message":"the file named on the command line does not exist"}],"warnings":[],"disabled":[]}`},
		{"version -o json", "", 0, `{"name":"mcp-broker","version":"1.2.3"}`},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			b := newBench(t)
			writeFile(t, "b.toml", tt.file)
			b.expect(t, b.do(strings.Fields(tt.args)...), tt.code, tt.want+"\n", "")
		})
	}
}

func TestCompletion(t *testing.T) {
	for shell, want := range map[string]string{
		"bash":       "complete -o bashdefault -o default -F _broker_complete broker\n",
		"zsh":        "compdef _broker broker\n",
		"fish":       "-a 'check' -d 'validate a configuration without starting'\n",
		"powershell": "Register-ArgumentCompleter -Native -CommandName broker ",
	} {
		b := newBench(t)
		if code := b.do("completion", shell); code != 0 || !strings.Contains(b.out.String(), want) || b.err.String() != "" {
			t.Errorf("%s: exit code %d, output %q, error %q", shell, code, b.out, b.err)
		}
	}
}

// "--" before the question would end the flags, and the question with them.
func TestCompletionAsksAboutFlagsWithOneDash(t *testing.T) {
	for name, script := range map[string]string{"bash": bashCompletion, "zsh": zshCompletion, "powershell": powershellCompletion} {
		if !strings.Contains(script, "+=(-)") && !strings.Contains(script, "+= '-'") {
			t.Errorf("%s passes on what is being typed:\n%s", name, script)
		}
	}
}

// What the scripts ask.
func TestCompletionAnswers(t *testing.T) {
	tests := []struct{ args, want string }{
		{"", "run bridge check doctor status get describe logs restart diagnose guide tools call watch bundle scenario version completion help"},
		{"completion", "bash zsh fish powershell"},
		{"-", "--version --help"},
		{"run -", "--port --host --heartbeat --log-format --demo --help"},
		{"run --po", "--port --host --heartbeat --log-format --demo --help"},
		{"run", ""},
		{"bridge -", "--url --wait --help"},
	}
	for _, tt := range tests {
		b := newBench(t)
		want := strings.ReplaceAll(tt.want, " ", "\n") + "\n"
		if tt.want == "" {
			want = ""
		}
		b.expect(t, b.do(append(strings.Fields(tt.args), "--generate-bash-completion")...), 0, want, "")
	}
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
