package remote

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpbroker/actors/msg"
)

// The slot is told of a session that was opened again before it gets anything of it,
// whatever the server says around its answer to initialize.
func TestRenewalIsTold(t *testing.T) {
	const early, behind = `{"jsonrpc":"2.0","method":"notifications/early"}`, `{"jsonrpc":"2.0","method":"notifications/behind"}`
	s := newServer(t)
	b := connect(t, Config{URL: s.URL})
	s.settled(b)
	s.forget()
	s.set(func() {
		s.before = func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
			if string(body) != initialize {
				return false
			}
			s.set(func() { s.sessions["again"] = true })
			w.Header().Set(sessionHeader, "again")
			events(w, event(early)+event(welcome)+event(behind)) // in one piece: it is not read on for long
			return true
		}
	})
	b.send(request(2, "a"))
	renewed, ok := receive(t, b.slot, "message for the slot").(*msg.ProviderRenewed)
	if !ok || renewed.Gen != slotGen {
		t.Fatalf("the slot got %+v first", renewed)
	}
	equal(t, "answer to initialize", string(renewed.Answer.Bytes), welcome)
	got := []string{b.next(), b.next(), b.next()} // the call may overtake them
	for _, want := range []string{early, behind, response(2, "a")} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is not among %v", want, got)
		}
	}
}

// A server that keeps forgetting its sessions does not keep clients reading its lists.
func TestRenewalsAreToldSeldom(t *testing.T) {
	if usualPace.renewal != 10*time.Second {
		t.Errorf("usually %s apart", usualPace.renewal)
	}
	for _, tt := range []struct {
		apart time.Duration
		told  int
	}{{time.Hour, 1}, {0, 3}} {
		s := newServer(t)
		b := newBroker(t)
		b.pace.renewal = tt.apart
		b.start(Config{URL: s.URL})
		b.attach()
		s.settled(b)
		told := 0
		for id := 2; id < 5; id++ {
			s.forget()
			b.send(request(id, "a"))
			m := receive(t, b.slot, "message for the slot")
			if _, renewed := m.(*msg.ProviderRenewed); renewed {
				told++
				m = receive(t, b.slot, "message for the slot")
			}
			if f, ok := m.(*msg.ProviderFrame); !ok || string(f.Frame.Bytes) != response(id, "a") {
				t.Fatalf("the slot got %+v for call %d", m, id)
			}
		}
		if told != tt.told {
			t.Errorf("at least %s apart the slot was told %d times, want %d", tt.apart, told, tt.told)
		}
	}
}

// A session the slot itself has opened is no news to it.
func TestSecondInitializeIsNotTold(t *testing.T) {
	s := newServer(t)
	b := connect(t, Config{URL: s.URL})
	s.settled(b)
	b.send(initialize, request(2, "a"))
	for _, want := range []string{welcome, response(2, "a")} {
		m, ok := receive(t, b.slot, "message for the slot").(*msg.ProviderFrame)
		if !ok || string(m.Frame.Bytes) != want {
			t.Errorf("the slot got %+v, want %s", m, want)
		}
	}
}

// The event stream moves to another session at once, though the server holds the one of
// the old session open.
func TestEventStreamMoves(t *testing.T) {
	for name, renew := range map[string]func(s *server, b *broker){
		"opened again": func(s *server, b *broker) {
			s.forget()
			b.send(request(2, "a"))
			b.expect(response(2, "a"))
		},
		"of a second initialize": func(_ *server, b *broker) {
			b.send(initialize)
			b.expect(welcome)
		},
	} {
		t.Run(name, func(t *testing.T) {
			opened, left := make(chan string, 2), make(chan string, 2)
			s := newServer(t)
			s.stream = func(w http.ResponseWriter, r *http.Request) {
				events(w)
				opened <- r.Header.Get(sessionHeader)
				<-r.Context().Done()
				left <- r.Header.Get(sessionHeader)
			}
			b := connect(t, Config{URL: s.URL})
			s.settled(b)
			equal(t, "stream", receive(t, opened, "stream"), "session-1")
			renew(s, b)
			equal(t, "next stream", receive(t, opened, "stream"), "session-2")
			equal(t, "stream that is left", receive(t, left, "end of the stream"), "session-1")
			if text := b.log.String(); strings.Contains(text, "its event stream ended") {
				t.Errorf("logged: %s", text)
			}
		})
	}
}

// A second initialize that the server refuses leaves the session as it is.
func TestSecondInitializeRefused(t *testing.T) {
	const no = `{"jsonrpc":"2.0","id":"brk-1","error":{"code":-32602,"message":"unsupported protocol version"}}`
	s := newServer(t)
	b := connect(t, Config{URL: s.URL})
	s.settled(b)
	s.set(func() {
		s.before = func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
			if string(body) == initialize {
				respond(w, no)
			}
			return string(body) == initialize
		}
	})
	b.send(initialize, request(2, "a"))
	b.expect(no, response(2, "a"))
	s.took("POST  " + initialize)
	s.took("POST session-1 " + request(2, "a"))
}

// A session that a second initialize has replaced ends behind the calls under way in it.
func TestReplacedSessionEnds(t *testing.T) {
	s := newServer(t)
	held, release := s.slowly()
	b := connect(t, Config{URL: s.URL})
	s.settled(b)
	b.send(request(2, "slow"))
	receive(t, held, "call")
	b.send(initialize, request(3, "a"))
	b.expect(welcome, response(3, "a"))
	for _, want := range []string{"POST session-1 " + request(2, "slow"), "POST  " + initialize, "POST session-2 " + request(3, "a")} {
		s.took(want)
	}
	close(release)
	b.expect(response(2, "slow"))
	s.took("DELETE session-1 ")
}

// A server that gives the same session to a second initialize keeps it.
func TestSameSessionAgain(t *testing.T) {
	s := newServer(t)
	b := connect(t, Config{URL: s.URL})
	s.settled(b)
	s.set(func() { s.n = 0 })
	b.send(initialize, request(2, "a"))
	b.expect(welcome, response(2, "a"))
	s.took("POST  " + initialize)
	s.took("POST session-1 " + request(2, "a"))
}

// Where the slot's own initialize and the renewal of a lost session meet, one session is
// used, and the other one is ended at the server.
func TestRenewalLoses(t *testing.T) {
	s := newServer(t)
	b := connect(t, Config{URL: s.URL})
	s.settled(b)
	s.forget()
	telling, told := make(chan struct{}), make(chan struct{})
	s.set(func() {
		s.before = func(_ http.ResponseWriter, r *http.Request, body []byte) bool {
			if string(body) == initialized && r.Header.Get(sessionHeader) == "session-2" {
				close(telling)
				await(r, told)
			}
			return false
		}
	})
	b.send(request(2, "a"))
	receive(t, telling, "notifications/initialized")
	b.send(initialize)
	b.expect(welcome)
	for _, want := range []string{"POST session-1 " + request(2, "a"), "POST  " + initialize, "POST session-2 " + initialized,
		"POST  " + initialize, "DELETE session-1 "} {
		s.took(want)
	}
	close(told)
	s.took("DELETE session-2 ")
	s.took("POST session-3 " + request(2, "a"))
	if m, ok := receive(t, b.slot, "answer").(*msg.ProviderFrame); !ok || string(m.Frame.Bytes) != response(2, "a") {
		t.Errorf("the slot got %+v", m)
	}
}

// As above, and the renewal comes first.
func TestRenewalIsReplaced(t *testing.T) {
	s := newServer(t)
	b := connect(t, Config{URL: s.URL})
	s.settled(b)
	asked, answer := make(chan struct{}), make(chan struct{})
	s.set(func() {
		first := true
		s.before = func(w http.ResponseWriter, r *http.Request, body []byte) bool {
			if string(body) != initialize || !first {
				return false
			}
			first = false
			close(asked)
			await(r, answer)
			s.set(func() { s.sessions["slow"] = true })
			w.Header().Set(sessionHeader, "slow")
			_, _ = io.WriteString(w, welcome)
			return true
		}
	})
	b.send(request(2, "a"))
	b.expect(response(2, "a"))
	s.took("POST session-1 " + request(2, "a"))
	s.forget()
	b.send(initialize)
	receive(t, asked, "initialize")
	s.took("POST  " + initialize)
	go func() {
		_, err := b.driver.(*streamable).renew(b.driver.(*streamable).current(), nil)
		if err != nil {
			t.Error(err)
		}
		close(answer)
	}()
	b.expect(welcome)
	for _, want := range []string{"POST  " + initialize, "POST session-2 " + initialized, "DELETE session-2 "} {
		s.took(want)
	}
	b.send(request(3, "a"))
	b.expect(response(3, "a"))
	s.took("POST slow " + request(3, "a"))
}
