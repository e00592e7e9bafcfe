package scenarios

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// embeddedStart begins a script whose broker lives in the test.
const embeddedStart = "title = 't'\n[[step]]\nbroker = 'start'\nembedded = true\n"

func steps(lines ...string) string {
	text := embeddedStart
	for _, line := range lines {
		text += "[[step]]\n" + strings.ReplaceAll(line, "; ", "\n") + "\n"
	}
	return text
}

// What no built-in scenario uses.
func TestVocabulary(t *testing.T) {
	t.Parallel()
	out := newOutput()
	file := write(t, steps(
		`connect = "A"; slot = "a"`,
		`connect = "M"; transport = "multiplex"; slot = "a"`,
		`expect_refusal = "M"; code = -32000; contains = ['Provider "a" is already connected.', "provider_status"]`,
		`expect_state = "M"; state = "open"`,
		`expect_slot = "a"; transport = "ws"; connected = true`,
		`session = "c"; slot = "a"`,
		`call = "c"; tool = "echo"; args = { text = "over" }; text = "over"`,
		`call = "c"; method = "no/such"; params = { x = 1 }; code = -32601; contains = "no/such"`,
		`send = "A"; frame = '{"jsonrpc":"2.0","id":"x","method":"roots/list"}'`,
		`expect_log = ["opened a request of its own", "roots/list"]; since = "step"`,
		`close = "A"`,
		`expect_slot = "a"; transport = "ws-multiplex"; connected = true`,
		`call = "c"; tool = "whoami"; text = "M"`,
		`connect = "R"; transport = "raw"; path = "/provider/raw"`,
		`session = "pending"; slot = "a"`,
		`send = "R"; frame = '{"jsonrpc":"2.0","id":1,"method":"ping"}'`,
		`receive = "R"; frame = '{"jsonrpc":"2.0","id":1,"result":{}}'`,
		`close = "R"; code = 3001; reason = "done"`,
		`expect_slot = "raw"; transport = "none"; connected = false`,
		`reconnect = "R"`,
		`broker = "restart"; config = { providerTakeover = "reject" }`,
		`expect_close = "R"; code = 1001`,
		`expect_close = "M"; code = 1001`,
		`expect_open = "M"`,
		`broker = "stop"`,
		`expect_close = "M"; code = 1001`,
	))
	if err := Run(t.Context(), fast(out), file); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// Sessions of every transport, and what no built-in scenario does with them.
func TestSessionVocabulary(t *testing.T) {
	t.Parallel()
	out := newOutput()
	const changed = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	lines := []string{
		`connect = "A"; slot = "a b"`,
		`session = "http"; slot = "a b"; as = "opens"`,
		`await = "opens"`,
		`session = "sse"; slot = "a b"; transport = "sse"`,
		`session = "ws"; slot = "a b"; transport = "ws"`,
		`session = "stdio"; slot = "a b"; transport = "stdio"`,
	}
	all := []string{"http", "sse", "ws", "stdio"}
	lines = append(lines, `send = "A"; frame = '`+changed+`'`)
	for _, id := range all {
		lines = append(lines,
			`expect_message = "`+id+`"; frame = '`+changed+`'; method = "notifications/tools/list_changed"; contains = ["jsonrpc", "2.0"]`,
			`call = "`+id+`"; tool = "hold"; as = "held"; progress = true`,
			`receive = "A"; as = "request"`,
			`report = "request"`,
			`report = "request"`,
			`answer = "request"; result = { content = [{ type = "text", text = "`+id+`" }] }`,
			`await = "held"; text = "`+id+`"; progressed = 2`)
	}
	lines = append(lines, `flood = "A"; count = 40; size = 9000; heard_by = ["http", "sse", "ws", "stdio"]`, `flood = "A"; count = 1`)
	for _, id := range all {
		lines = append(lines, `expect_message = "`+id+`"; method = "notifications/flood"; contains = '"n":0'`, `close = "`+id+`"`)
	}
	lines = append(lines,
		`expect_slot = "a b"; transport = "ws"; connected = true`,
		`session = "ws"; slot = "a b"; transport = "ws"`,
		`broker = "stop"`,
		`expect_close = "ws"; code = 1001; reason = "The broker is stopping"`,
	)
	if err := Run(t.Context(), fast(out), write(t, steps(lines...))); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// A script may leave a bridge and a broker with a host behind.
func TestHostsLeftBehind(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"title = 't'\n[[step]]\nbroker = 'start'\n[[step]]\nsession = 'h'\nslot = 'a'\ntransport = 'stdio'\ncode = -32000\n",
		"title = 't'\n[[step]]\nbroker = 'start'\nconfig = { stdioProvider = 'a' }\n[[step]]\nsession = 'h'\nslot = 'a'\ntransport = 'stdio'\ncode = -32000\n",
		"title = 't'\n[[step]]\nbroker = 'start'\nconfig = { stdioProvider = 'a' }\n[[step]]\nbroker = 'kill'\n[[step]]\nbroker = 'restart'\n" +
			"[[step]]\nsession = 'h'\nslot = 'a'\ntransport = 'stdio'\ncode = -32000\n",
	} {
		out := newOutput()
		if err := Run(t.Context(), fast(out), write(t, text)); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		expectFreed(t, out)
	}
}

// The standard input and output of a broker are one session's.
func TestSecondHost(t *testing.T) {
	t.Parallel()
	out := newOutput()
	const host = "[[step]]\nsession = '%s'\nslot = 'a'\ntransport = 'stdio'\ncode = -32000\n"
	text := "title = 't'\n[[step]]\nbroker = 'start'\nconfig = { stdioProvider = 'a' }\n" + fmt.Sprintf(host, "h")
	for _, name := range []string{"i", "h"} {
		err := Run(t.Context(), fast(out), write(t, text+fmt.Sprintf(host, name)))
		if err == nil || !strings.Contains(out.lines.last(), "another session has the process's standard input and output") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// A scenario that goes otherwise than scripted says where, what it expected and
// what it got.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	session := []string{`connect = "A"; slot = "a"`, `session = "c"; slot = "a"`}
	tests := []struct {
		name  string
		steps []string
		want  string // of the last step
	}{
		{"result", append(session, `call = "c"; tool = "whoami"; text = "B"`), `expected the result "B", got the result "A"`},
		{"error", append(session, `call = "c"; tool = "whoami"; code = -32000`), `expected error -32000, got the result "A"`},
		{"no result", append(session, `call = "c"; tool = "nope"`), `expected a result, got error -32602 "Unknown tool: nope"`},
		{"contains", append(session, `call = "c"; tool = "whoami"; contains = ["A", "B"]`), `expected a result containing ["A" "B"], got the result "A"`},
		{"progress", append(session, `call = "c"; tool = "whoami"; progressed = 1`), `expected 1 progress notifications, got 0`},
		{"slow", append(session, `call = "c"; tool = "hold"; within = "20ms"; text = "x"`), `expected the result "x", got nothing within 20ms`},
		{"await", append(session, `call = "c"; tool = "hold"; as = "p"`, `await = "p"; within = "20ms"`), `expected a result, got nothing within 20ms`},
		{"no session", []string{`session = "c"; slot = "a"`}, `expected a result, got error -32000 "Provider \"a\" not connected"`},
		{"no broker", []string{`broker = "stop"`, `connect = "A"; slot = "a"`}, `expected A: open, got failed: serve scenario provider A: connect provider: dial `},
		{"no SSE session", []string{`broker = "stop"`, `session = "c"; slot = "a"; transport = "sse"`}, `expected a result, got no answer: open the event stream: `},
		{"no WebSocket session", []string{`broker = "stop"`, `session = "c"; slot = "a"; transport = "ws"`}, `expected a result, got no answer: failed to WebSocket dial: `},
		{"no bridged session", []string{`broker = "stop"`, `session = "c"; slot = "a"; transport = "stdio"`}, `expected a result, got error -32000 "Cannot reach the broker at http://127.0.0.1:`},
		{"connection lost", append(session[:1:1], `session = "c"; slot = "a"; transport = "ws"`, `call = "c"; tool = "hold"; as = "p"`, `receive = "A"`, `broker = "stop"`, `await = "p"`), `expected a result, got no answer: the connection ended before the answer`},
		{"message", append(session, `send = "A"; frame = '{"method":"n"}'`, `expect_message = "c"; method = "m"`), `expected method m, got {"method":"n"}`},
		{"no message", append(session, `expect_message = "c"; within = "20ms"`), `expected a message for c, got nothing within 20ms`},
		{"flood", append(session, `send = "A"; frame = '{"method":"n"}'`, `flood = "A"; count = 2; heard_by = "c"`), `expected c: notification 0 of the flood, got {"method":"n"}`},
		{"flood unheard", append(session, `silence = "A"`, `session = "d"; slot = "b"; code = -32000`, `flood = "A"; count = 2; heard_by = "d"; within = "20ms"`), `notification 0 of the flood: expected a message for d, got nothing within 20ms`},
		{"close code", []string{`connect = "A"; slot = "a"`, `connect = "B"; slot = "a"`, `expect_close = "B"; code = 1000`}, `expected B: closed 1000, got closed 1008 "Slot already held`},
		{"close reason", []string{`connect = "A"; slot = "a"`, `connect = "B"; slot = "a"`, `expect_close = "B"; code = 1008; reason = "No"`}, `expected B: closed 1008 "No", got closed 1008 "Slot already held`},
		{"no close", []string{`connect = "A"; slot = "a"`, `expect_close = "A"; code = 1000; within = "20ms"`}, `expected A: closed 1000, got nothing within 20ms`},
		{"no open", []string{`connect = "A"; slot = "a"`, `close = "A"`, `expect_open = "A"; within = "20ms"`}, `expected A: open, got nothing within 20ms`},
		{"refusal", []string{`connect = "A"; slot = "a"`, `expect_refusal = "A"; code = -1; contains = "x"; within = "20ms"`}, `expected A: refused -1 containing ["x"], got nothing within 20ms`},
		{"state", []string{`connect = "A"; slot = "a"`, `expect_state = "A"; state = "closed"`}, `expected A: closed, got open`},
		{"open again", []string{`connect = "A"; slot = "a"`, `reconnect = "A"`}, `A cannot connect again: it is open`},
		{"ping", []string{`connect = "A"; slot = "a"`, `expect_ping = "A"`}, `A is not silent, so it answers every ping`},
		{"no ping", []string{`connect = "A"; slot = "a"`, `silence = "A"`, `expect_ping = "A"; within = "20ms"`}, `expected a ping for A, got nothing within 20ms`},
		{"log", []string{`connect = "A"; slot = "a"`, `expect_log = ["ws connect", "purple"]; within = "20ms"`}, `expected a log line with ["ws connect" "purple"], got nothing within 20ms`},
		{"old log", []string{`connect = "A"; slot = "a"`, `expect_log = "ws connect"`, `close = "A"`, `expect_log = "ws connect"; within = "20ms"`}, `expected a log line with ["ws connect"], got nothing within 20ms`},
		{"unwanted log", []string{`connect = "A"; slot = "a"`, `expect_log = "ws connect"`, `expect_no_log = ["ws", "connect"]; since = "start"`}, `expected no log line with ["ws" "connect"], got [broker] ws connect path="/provider/a"`},
		{"slot", []string{`connect = "A"; slot = "a"`, `expect_slot = "a"; transport = "none"; connected = false; within = "20ms"`}, `expected slot "a" with transport "none" and connected false, got "ws" and true`},
		{"unknown slot", []string{`expect_slot = "a"; transport = "none"; connected = false`}, `describe slot "a": no such slot`},
		{"frame", []string{`connect = "R"; transport = "raw"; path = "/providers"`, `send = "R"; frame = '{"jsonrpc":"2.0","method":"x"}'`, `receive = "R"; frame = "{}"`}, `expected {}, got {"jsonrpc":"2.0","id":null,"error":`},
		{"no frame", []string{`connect = "R"; transport = "raw"; path = "/providers"`, `receive = "R"; within = "20ms"`}, `expected a message for R, got nothing within 20ms`},
		{"method", append(session, `call = "c"; tool = "hold"; as = "p"`, `receive = "A"; method = "ping"`), `expected method ping, got {"id":"brk-`},
		{"token", append(session, `call = "c"; tool = "hold"; as = "p"`, `receive = "A"; as = "r"`, `report = "r"`), `the caller gave no progress token; call with progress = true`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			file := write(t, steps(tt.steps...))
			out := newOutput()
			err := Run(t.Context(), fast(out), file)
			var failed *FailedError
			if !errors.As(err, &failed) || err.Error() != "scenario failed: my" {
				t.Fatalf("Run returned %v\n%s", err, out)
			}
			text := steps(tt.steps...)
			line := strings.Count(text[:strings.LastIndex(text, "[[step]]")], "\n") + 1
			_, got, _ := strings.Cut(out.lines.last(), " s): ")
			want := "step " + strconv.Itoa(len(tt.steps)+1) + " (" + file + ":" + strconv.Itoa(line) + "): " + tt.want
			if !strings.HasPrefix(out.lines.last(), "FAIL my (after ") || !strings.HasPrefix(got, want) {
				t.Errorf("verdict\n%s\nwant\n%s", out.lines.last(), want)
			}
		})
	}
}

// A broker that ends by itself is why a step fails, whatever it waited for.
func TestBrokerDies(t *testing.T) {
	tests := []struct{ mode, want string }{
		{"dies", "the broker ended by itself: exit status 3"},
		{"refuses", "the broker ended by itself: exit status 1"},
	}
	for _, tt := range tests {
		t.Setenv(fakeMode, tt.mode)
		out := newOutput()
		o := fast(out)
		o.Broker = os.Args[0]
		err := Run(t.Context(), o, write(t, "title = 't'\n[[step]]\nbroker = 'start'\n[[step]]\nexpect_log = 'never'\n"))
		if err == nil || !strings.HasSuffix(out.lines.last(), tt.want) {
			t.Errorf("%s: %v\n%s", tt.mode, err, out)
		}
	}
}

// A port that is taken fails the scenario, with the broker's own words above.
func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	out := newOutput()
	o := fast(out)
	o.AnyPort, o.Port = false, l.Addr().(*net.TCPAddr).Port
	err = Run(t.Context(), o, "framing-mismatch")
	if err == nil || !strings.Contains(out.String(), "the address is already in use") ||
		!strings.HasSuffix(out.lines.last(), "step 1 (framing-mismatch.toml:8): the broker ended by itself: exit status 1") {
		t.Errorf("%v\n%s", err, out)
	}
}

// A broker that never gets ready is killed when the run is given up.
func TestBrokerHangs(t *testing.T) {
	t.Setenv(fakeMode, "mute")
	out := newOutput()
	o := fast(out)
	o.Broker = os.Args[0]
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	err := Run(ctx, o, write(t, "title = 't'\n[[step]]\nbroker = 'start'\n"))
	if !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(out.lines.last(), "STOP my (after ") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestPace(t *testing.T) {
	for _, tt := range []struct {
		o    Options
		want time.Duration
	}{{Options{}, defaultPace}, {Options{Pace: time.Second}, time.Second}, {Options{Pace: time.Second, Fast: true}, 0}} {
		if got := tt.o.pace(); got != tt.want {
			t.Errorf("%+v paces %s, want %s", tt.o, got, tt.want)
		}
	}
}

// A shut valve holds back bytes and the end of the connection, and says that
// something came.
func TestValve(t *testing.T) {
	v := &valve{}
	near, far := net.Pipe()
	conn := &valvedConn{Conn: near, valve: v, closed: make(chan struct{})}
	if v.arrived() != nil {
		t.Error("an open valve has unread bytes")
	}
	v.silence()
	v.silence()
	read := make(chan string, 1)
	go func() {
		buf := make([]byte, 8)
		n, _ := conn.Read(buf)
		read <- string(buf[:n])
	}()
	if _, err := far.Write([]byte("ping")); err != nil {
		t.Fatal(err)
	}
	<-v.arrived()
	select {
	case got := <-read:
		t.Errorf("a silent peer read %q", got)
	default:
	}
	v.resume()
	v.resume()
	if got := <-read; got != "ping" {
		t.Errorf("read %q after the silence", got)
	}

	v.silence()
	ended := make(chan error, 1)
	go func() {
		_, err := conn.Read(make([]byte, 8))
		ended <- err
	}()
	if err := far.Close(); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("a silent read of a closed connection ended with %v", err)
	}
}
