package main

import (
	"os"
	"strings"
	"testing"
)

// full is a broker with the answers of testdata/remote.
func full(t *testing.T) *fakeBroker {
	f := newFakeBroker(t)
	for _, name := range []string{"broker_info", "providers_list", "provider_status", "broker_diagnose"} {
		f.tool(name, testdata(t, "remote/"+name+".json"))
	}
	f.set("tools/call broker_guide", `{"content":[{"type":"text","text":"# Guide\n\nText\u001b[2J.\n"}],"isError":false}`)
	return f
}

// What people read: spec 03 1.4 and 2.5 in tables and paragraphs.
func TestRemoteText(t *testing.T) {
	tests := []struct {
		args, file string
		code       int
	}{
		{"status", "status.txt", 0},
		{"get slots", "slots.txt", 0},
		{"get sessions", "sessions.txt", 0},
		{"describe slot site/pump-1", "slot.txt", 0},
		{"diagnose", "diagnose.txt", 2},
		{"guide", "guide.txt", 0},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			f, file := full(t), testdata(t, "remote/"+tt.file)
			b := newBench(t)
			b.environ = []string{envURL + "=" + f.URL}
			if code := b.do(strings.Fields(tt.args)...); code != tt.code || b.err.String() != "" {
				t.Errorf("exit code %d, standard error %q", code, b.err)
			}
			golden(t, file, strings.ReplaceAll(b.out.String(), f.URL, "http://127.0.0.1:3000"))
		})
	}
}

// What machines read is what the broker sent, on one line, wherever the flag stands.
func TestRemoteJSON(t *testing.T) {
	tests := []struct{ args, file string }{
		{"status -o json", "broker_info"}, {"get slots --output=json", "providers_list"},
		{"get sessions -o=json", "providers_list"}, {"describe slot -o json x", "provider_status"}, {"describe slot x -o json", "provider_status"},
		{"diagnose pump-1 -o json", "broker_diagnose"},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			f := full(t)
			raw, err := os.ReadFile(testdata(t, "remote/"+tt.file+".json"))
			if err != nil {
				t.Fatal(err)
			}
			want := 0
			if tt.file == "broker_diagnose" {
				want = 2
			}
			b := newBench(t)
			b.environ = []string{envURL + "=" + f.URL}
			b.expect(t, b.do(strings.Fields(tt.args)...), want, string(compact(raw))+"\n", "")
		})
	}
	f := full(t)
	b := newBench(t)
	b.expect(t, b.do("guide", "deploy", "-o", "json", "--url", f.URL), 0, `{"content":[{"type":"text","text":"# Guide\n\nText\u001b[2J.\n"}],"isError":false}`+"\n", "")
	if !strings.Contains(f.log(), `"arguments":{"topic":"deploy"},"name":"broker_guide"`) {
		t.Errorf("asked\n%s", f.log())
	}
}

// The exit code of diagnose is the worst that was found.
func TestDiagnoseVerdict(t *testing.T) {
	tests := []struct {
		severities string
		want       int
	}{{"", 0}, {"info", 0}, {"warning", 1}, {"info warning", 1}, {"warning error", 2}, {"fatal", 0}}
	for _, tt := range tests {
		var r report
		for _, s := range strings.Fields(tt.severities) {
			r.Problems = append(r.Problems, problem{Severity: s})
		}
		code := 0
		if coded, ok := r.verdict().(interface{ ExitCode() int }); ok {
			code = coded.ExitCode()
		}
		if code != tt.want {
			t.Errorf("%q exits %d, want %d", tt.severities, code, tt.want)
		}
	}
	f := newFakeBroker(t)
	f.tool("broker_diagnose", testdata(t, "remote/healthy.json"))
	b := newBench(t)
	b.expect(t, b.do("diagnose", "pump-1", "--url", f.URL), 0,
		"mcp-broker 1.2.3, up 59s: 1 slot, 1 of 1 providers connected, 1 request pending\n\nproblems: none\n", "")
	if !strings.Contains(f.log(), `"arguments":{"slot":"pump-1"},"name":"broker_diagnose"`) {
		t.Errorf("asked\n%s", f.log())
	}
}

// A tool of _broker that fails is a refusal in its own words.
func TestRemoteRefusals(t *testing.T) {
	f := newFakeBroker(t)
	f.set("tools/call provider_status", `{"content":[{"type":"text","text":"Unknown provider: \"x\"."}],"isError":true}`)
	f.set("tools/call broker_info", `{"content":[{"type":"text","text":"{}"}],"isError":false}`)
	f.set("tools/call broker_diagnose", `error {"code":-32001,"message":"Forbidden"}`)
	f.set("tools/call providers_list", `{"content":7}`)
	f.set("tools/list", `error {"code":-32000,"message":"evil\u001b[2J\nand more"}`)
	tests := []struct{ args, want string }{
		{"describe slot x", "Unknown provider: \"x\".\n"},
		{"status", "The answer of broker_info cannot be read: unexpected end of JSON input\n"},
		{"diagnose", "Forbidden (-32001)\n"},
		{"tools s", "evil\\x1b[2J\nand more (-32000)\n"},
		{"get slots", "The answer of providers_list is no tool result: json: cannot unmarshal number into Go struct field toolResult.content of type []main.contentBlock\n"},
	}
	for _, tt := range tests {
		b := newBench(t)
		b.expect(t, b.do(append(strings.Fields(tt.args), "--url", f.URL)...), 4, "", tt.want)
	}
}

// JSON on a terminal is the same JSON, and no more than text.
func TestEscapeControls(t *testing.T) {
	got := string(escapeControls([]byte("{\"a\":\"é\u009b2J\x7f\u202e\U000E0041🎉\"}\n")))
	if want := `{"a":"é\u009b2J\u007f\u202e\udb40\udc41🎉"}` + "\n"; got != want {
		t.Errorf("escaped %q, want %q", got, want)
	}
}

func TestRemoteRefusedCommandLines(t *testing.T) {
	tests := []struct{ args, want string }{
		{"get", "broker get: name what to get: slots, instances or sessions\nSee 'broker get --help'.\n"},
		{"get pods", "broker get: cannot get \"pods\"; known are slots, instances and sessions\nSee 'broker get --help'.\n"},
		{"get slots x", "broker get slots: unexpected argument \"x\"\nSee 'broker get slots --help'.\n"},
		{"get slots -o yaml", "broker get slots: --output \"yaml\" must be text or json\nSee 'broker get slots --help'.\n"},
		{"describe", "broker describe: name what to describe: slot NAME or instance NAME\nSee 'broker describe --help'.\n"},
		{"describe pump", "broker describe: cannot describe \"pump\"; known are slot and instance\nSee 'broker describe --help'.\n"},
		{"describe slot", "broker describe slot: name a slot (see 'broker get slots')\nSee 'broker describe slot --help'.\n"},
		{"status --timeout 0s", "broker status: --timeout must be more than 0s\nSee 'broker status --help'.\n"},
		{"status --ulr x", "broker status: unknown flag --ulr (did you mean --url?)\nSee 'broker status --help'.\n"},
		{"tools", "broker tools: name a slot (see 'broker get slots')\nSee 'broker tools --help'.\n"},
		{"call s", "broker call: name a slot and a tool (see 'broker tools SLOT')\nSee 'broker call --help'.\n"},
		{"call s t x", "broker call: \"x\" is no argument: write key=text or key:=json\nSee 'broker call --help'.\n"},
		{"watch x", "broker watch: unexpected argument \"x\"\nSee 'broker watch --help'.\n"},
		{"doctor a b", "broker doctor: unexpected argument \"b\"\nSee 'broker doctor --help'.\n"},
		{"doctor --url h", "broker doctor: \"h\" must begin with http:// or https://\nSee 'broker doctor --help'.\n"},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			b := newBench(t)
			b.expect(t, b.do(strings.Fields(tt.args)...), 1, "", tt.want)
		})
	}
}

// Names that a shell would expand are not proposed to it.
func TestCompleteNames(t *testing.T) {
	f := full(t)
	f.set("tools/list", `{"tools":[{"name":"echo"},{"name":"$(reboot)"},{"name":"-rf"},{"name":"a b"},{"name":"get_time.v2"}]}`)
	tests := []struct{ args, want string }{
		{"describe slot", "_all\n_broker\npump-1\n"},
		{"diagnose", "_all\n_broker\npump-1\n"},
		{"diagnose pump-1", ""},
		{"tools", "_all\n_broker\npump-1\n"},
		{"call", "_all\n_broker\npump-1\n"},
		{"call pump-1", "echo\nget_time.v2\n"},
		{"call pump-1 echo", ""},
		{"guide", strings.Join(guideTopics(), "\n") + "\n"},
		{"guide -", "--url\n--output\n--timeout\n--help\n"},
		{"get", "slots\ninstances\nsessions\n"},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			b := newBench(t)
			b.environ = []string{envURL + "=" + f.URL}
			b.expect(t, b.do(append(strings.Fields(tt.args), "--generate-bash-completion")...), 0, tt.want, "")
		})
	}
	b := newBench(t)
	b.environ = []string{envURL + "=http://127.0.0.1:1"}
	b.expect(t, b.do("tools", "--generate-bash-completion"), 0, "", "")
}
