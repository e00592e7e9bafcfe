package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// wrote makes the broker tell these lines of upstream "files".
func (f *fakeBroker) wrote(lines ...string) {
	f.set("tools/call instance_status", `{"content":[],"structuredContent":{"name":"files","kind":"stdio","stderr":`+string(encode(lines))+`}}`)
}

// Lines are printed as they come, each once, also after the broker has forgotten the
// session; a signal ends it with 0.
func TestLogsFollow(t *testing.T) {
	f := newFakeBroker(t)
	f.wrote("a", "b", "c")
	w := &watching{t: t, b: newBench(t), f: f, code: make(chan int, 1)}
	w.b.poll = time.Millisecond
	go func() { w.code <- w.b.do("logs", "files", "-f", "--lines", "2", "--url", f.URL) }()
	w.await("b\nc\n")
	f.wrote("a", "b", "c", "d")
	w.await("b\nc\nd\n")
	f.forget()
	f.wrote("c", "d", "e\x1b[2J")
	w.await("b\nc\nd\ne\\x1b[2J\n")
	f.wrote("new process")
	w.await("b\nc\nd\ne\\x1b[2J\nnew process\n")
	w.b.signal <- sigterm
	if code := <-w.code; code != 0 || w.b.err.String() != "" {
		t.Errorf("exit code %d, standard error %q", code, w.b.err)
	}
}

// A broker that goes away is told of once, and followed again.
func TestLogsFollowSurvives(t *testing.T) {
	f := newFakeBroker(t)
	f.wrote("a")
	w := &watching{t: t, b: newBench(t), f: f, code: make(chan int, 1)}
	w.b.poll = time.Millisecond
	go func() { w.code <- w.b.do("logs", "--follow", "files", "--url", f.URL) }()
	w.await("a\n")
	f.set("tools/call instance_status", `error {"code":-32000,"message":"away"}`)
	for !strings.Contains(w.b.err.String(), "away") {
		<-w.b.err.changed
	}
	f.wrote("a", "b")
	w.await("a\nb\n")
	w.b.signal <- sigterm
	if code := <-w.code; code != 0 || strings.Count(w.b.err.String(), "away") != 1 {
		t.Errorf("exit code %d, standard error %q", code, w.b.err)
	}
}

func TestLogsFollowRefused(t *testing.T) {
	f := newFakeBroker(t)
	f.set("tools/call instance_status", `{"content":[{"type":"text","text":"There is no upstream \"nosuch\"."}],"isError":true}`)
	b := newBench(t)
	b.expect(t, b.do("logs", "nosuch", "-f", "--url", f.URL), exitRefused, "", "There is no upstream \"nosuch\".\n")
	b = newBench(t)
	b.expect(t, b.do("logs", "files", "-f", "-o", "json", "--url", f.URL), 1, "",
		"broker logs: --follow prints text only: leave --output json out\nSee 'broker logs --help'.\n")
}

func TestNews(t *testing.T) {
	for _, tt := range []struct{ before, now, want string }{
		{"", "", ""}, {"", "a b", "a b"}, {"a b", "a b", ""}, {"a b", "a b c", "c"}, {"a b c", "b c d", "d"}, {"a b c", "c d e", "d e"},
		{"a b c", "x y z", "x y z"}, {"a a a", "a a a", ""}, {"a a b", "a b a", "a"}, {"a b c", "b c", ""}, {"a b", "", ""},
	} {
		got := news(strings.Fields(tt.before), strings.Fields(tt.now))
		if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%q to %q (-want +got):\n%s", tt.before, tt.now, diff)
		}
	}
}
