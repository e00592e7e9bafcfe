package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// start runs the command in the background and waits for the banner.
func (b *bench) start(t *testing.T, args ...string) (wait func() int) {
	t.Helper()
	code := make(chan int, 1)
	go func() { code <- b.do(append([]string{"run"}, args...)...) }()
	for !strings.Contains(b.err.String(), "Ctrl+C") && !strings.Contains(b.err.String(), `"url"`) {
		select {
		case <-b.err.changed:
		case c := <-code:
			t.Fatalf("ended with exit code %d before the banner: %s", c, b.err)
		case <-t.Context().Done():
			t.Fatal("no banner")
		}
	}
	return func() int { return <-code }
}

// spec 01 5.12 and 8.4: banner, one line for the signal, exit code 0.
func TestRunUntilSignal(t *testing.T) {
	tests := []struct {
		name, file string
		args       []string
		config     string
		signal     os.Signal
	}{
		{"defaults", "run.txt", nil, "", os.Interrupt},
		{"everything", "run-file.txt", []string{"--host", "0.0.0.0", "b.toml", "--port=8443"}, "tls = {cert = 'c', key = 'k'}\n" +
			"allowedOrigins = ['https://a.example', 'https://b.example']\n[paths]\nprovider = '/p'\nproviders = '/ps'\nmcp = 'rpc'\n" +
			"[www]\nmounts = [{urlPrefix = '/', dir = '.'}, {urlPrefix = '/docs', dir = '..'}]\n", sigterm},
		{"pattern", "run-pattern.txt", []string{"b.toml"}, "allowedOrigins = {pattern = '^https://', flags = 'i'}\n", sigterm},
		{"json", "run-json.txt", []string{"--log-format", "json", "--host", "::"}, "", sigterm},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file := testdata(t, tt.file)
			b := newBench(t)
			writeFile(t, "b.toml", tt.config)
			wait := b.start(t, tt.args...)
			b.signal <- tt.signal
			if code := wait(); code != 0 || b.out.String() != "" {
				t.Errorf("exit code %d, standard output %q", code, b.out)
			}
			golden(t, file, withoutTime(b.err.String()))
		})
	}
}

// withoutTime removes the time of JSON records.
func withoutTime(text string) string {
	return regexp.MustCompile(`(?m)^\{"time":"[^"]*",`).ReplaceAllString(text, "{")
}

// A second signal does not wait for what the first one began.
func TestSecondSignalHastens(t *testing.T) {
	b := newBench(t)
	stopping := make(chan struct{})
	b.server.stop = func(ctx context.Context) error {
		close(stopping)
		<-ctx.Done()
		return ctx.Err()
	}
	wait := b.start(t)
	b.signal <- os.Interrupt
	<-stopping
	b.signal <- sigterm
	if code := wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	want := "[mcp-broker] SIGINT received, stopping\n[mcp-broker] SIGTERM received again, not waiting any longer\n"
	if !strings.HasSuffix(b.err.String(), want) {
		t.Errorf("standard error ends in %q", b.err)
	}
}

// Wrappers signal a process, and its group besides: that is one signal. Another one
// hastens all the same.
func TestRepeatedSignalIsOne(t *testing.T) {
	_, release := hangUps() // the goroutine behind all signals is none of the bubble's
	release()
	for _, another := range []struct {
		signal os.Signal
		after  time.Duration
		name   string
	}{{os.Interrupt, signalEcho - 1, "SIGINT"}, {sigterm, signalEcho, "SIGTERM"}} {
		b := newBench(t)
		synctest.Test(t, func(t *testing.T) {
			b.signal, b.server.done = make(chan os.Signal, 2), make(chan error)
			b.server.stop = func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			}
			code := make(chan int, 1)
			go func() { code <- b.do("run") }()
			b.signal <- sigterm
			synctest.Wait()
			b.signal <- sigterm
			time.Sleep(signalEcho - 1)
			b.signal <- sigterm
			synctest.Wait()
			if len(code) != 0 {
				t.Error("a signal that came again hastened the end")
			}
			time.Sleep(another.after - (signalEcho - 1))
			b.signal <- another.signal
			if got := <-code; got != 0 {
				t.Errorf("exit code %d", got)
			}
		})
		want := "[mcp-broker] SIGTERM received, stopping\n[mcp-broker] " + another.name + " received again, not waiting any longer\n"
		if !strings.HasSuffix(b.err.String(), want) {
			t.Errorf("standard error ends in %q", b.err)
		}
	}
	if (arrival{}).echoedBy(sigterm) {
		t.Error("the first signal counts as a repeated one")
	}
}

// Entries that are left out are told once.
func TestDisabledIsLogged(t *testing.T) {
	b := newBench(t)
	writeFile(t, "broker.toml", "[[stdioUpstreams]]\nname = 'a'\ncommand = 'x'\nenabled = false\n")
	wait := b.start(t)
	b.signal <- os.Interrupt
	wait()
	if want := "[mcp-broker] Upstreams not started (enabled = false): a\n"; !strings.HasPrefix(b.err.String(), want) {
		t.Errorf("standard error %q", b.err)
	}
}

func TestServerFailureEndsRun(t *testing.T) {
	b := newBench(t)
	b.server.stop = func(context.Context) error { return errors.New("half of it") }
	wait := b.start(t)
	b.server.done <- errors.New("accept: too many open files")
	if code := wait(); code != 1 {
		t.Errorf("exit code %d", code)
	}
	want := "[mcp-broker] Stop failed: half of it\n[mcp-broker] Stopped: accept: too many open files\n"
	if !strings.HasSuffix(b.err.String(), want) {
		t.Errorf("standard error ends in %q", b.err)
	}
}

// listenError has the shape of a failed start: a text for the operator with
// the cause behind it.
type listenError struct {
	text string
	err  error
}

func (e *listenError) Error() string { return e.text }
func (e *listenError) Unwrap() error { return e.err }

// spec 03 5.6: message, cause, and the address unless the message has it.
func TestCannotStart(t *testing.T) {
	bind := fmt.Errorf("listen tcp 127.0.0.1:3000: %w", os.NewSyscallError("bind", syscall.EADDRINUSE))
	tests := []struct {
		name string
		err  error
		want string
	}{
		{"in use", &listenError{"Cannot listen on 127.0.0.1:3000: the address is already in use.", bind},
			"[mcp-broker] Cannot start: Cannot listen on 127.0.0.1:3000: the address is already in use.\n" +
				"[mcp-broker] Underlying error: EADDRINUSE listen tcp 127.0.0.1:3000: bind: address already in use\n"},
		{"plain", errors.New("no reason"),
			"[mcp-broker] Cannot start: no reason\n[mcp-broker] Configuration in effect: host=127.0.0.1 port=3000\n"},
		{"nothing underlies", fmt.Errorf("the demo provider was refused: %w", errors.New("slot is taken")),
			"[mcp-broker] Cannot start: the demo provider was refused: slot is taken\n[mcp-broker] Configuration in effect: host=127.0.0.1 port=3000\n"},
		{"cause without code", &listenError{"TLS is enabled but the material could not be read", errors.New("bad PEM")},
			"[mcp-broker] Cannot start: TLS is enabled but the material could not be read\n[mcp-broker] Underlying error: bad PEM\n" +
				"[mcp-broker] Configuration in effect: host=127.0.0.1 port=3000\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			b.server.startErr = tt.err
			b.expect(t, b.do("run"), 1, "", tt.want)
		})
	}
}

// spec 03 10.2 item 25: a broken file never starts with the defaults.
func TestRunRefusesConfiguration(t *testing.T) {
	b := newBench(t)
	writeFile(t, "broker.toml", "port = \n")
	b.expect(t, b.do("run"), 1, "", "broker.toml:1:8: expected value but found '\\n' instead\n"+
		"[mcp-broker] Cannot start: problems in the configuration: 1\n")

	b = newBench(t)
	b.environ = []string{"MCP_BROKER_CONFIG=nowhere.toml"}
	code := b.do("run")
	want := "[mcp-broker] Cannot use the config file at nowhere.toml: the file designated by MCP_BROKER_CONFIG does not exist. "
	if code != 1 || !strings.HasPrefix(b.err.String(), want) {
		t.Errorf("exit code %d, standard error %q", code, b.err)
	}
}

func TestFlagsReachTheBroker(t *testing.T) {
	b := newBench(t)
	b.environ = []string{"MCP_BROKER_PORT=1", "MCP_BROKER_PROVIDER_HEARTBEAT_MS=x", "MCP_BROKER_HOST=localhost"}
	wait := b.start(t, "--port", "0", "--heartbeat", "50")
	b.signal <- os.Interrupt
	wait()
	cfg := b.server.cfg
	if cfg.Port != 0 || cfg.ProviderHeartbeatIntervalMs != 50 || cfg.Host != "localhost" || len(cfg.Warnings) != 0 {
		t.Errorf("configuration %+v", cfg)
	}
}

func TestDemo(t *testing.T) {
	b := newBench(t)
	wait := b.start(t, "--demo")
	peer := <-b.server.attached
	calls := []struct{ frame, want string }{
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"message":"héllo"}}}`,
			`{"content":[{"text":"héllo","type":"text"}]}`},
		{`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo"}}`,
			`{"content":[{"text":"echo needs the argument \"message\", a string","type":"text"}],"isError":true}`},
	}
	// The provider registers itself before it answers.
	for _, call := range calls {
		peer.Deliver([]byte(call.frame))
		var answer struct {
			ID     *int
			Result map[string]any
		}
		for answer.ID == nil {
			if err := json.Unmarshal(<-b.server.sent, &answer); err != nil {
				t.Fatal(err)
			}
		}
		var want map[string]any
		if err := json.Unmarshal([]byte(call.want), &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, answer.Result); diff != "" {
			t.Errorf("%s (-want +got):\n%s", call.frame, diff)
		}
	}
	b.signal <- os.Interrupt
	if code := wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestDemoRefused(t *testing.T) {
	b := newBench(t)
	b.server.refusal = errors.New("slot is taken")
	code := b.do("run", "--demo")
	want := "[mcp-broker] Cannot start: the demo provider was refused: "
	if code != 1 || !strings.HasPrefix(b.err.String(), want) || !strings.Contains(b.err.String(), "slot is taken") {
		t.Errorf("exit code %d, standard error %q", code, b.err)
	}
}
