package remote

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"mcpbroker/actors/wire"
)

// closing is a server whose listener can be closed while its calls are being finished.
func closing(t *testing.T) (s *server, held chan string, release chan struct{}) {
	t.Helper()
	s = newServer(t)
	s.Config.SetKeepAlivesEnabled(false) // each call needs a connection of its own
	held, release = make(chan string, 8), make(chan struct{})
	s.call = func(w http.ResponseWriter, r *http.Request, f *wire.Frame) {
		held <- string(f.Method)
		select {
		case <-release:
			respond(w, echo(f))
		case <-r.Context().Done():
			held <- "cut off"
		}
	}
	return s, held, release
}

func unreached(s *server) string {
	return "dial tcp " + s.Listener.Addr().String() + ": connect: connection refused"
}

// A server that is being replaced takes no new connections and answers what it has taken:
// a call that cannot be sent is refused, those under way finish, and with the last one the
// connection ends.
func TestCallsUnderWay(t *testing.T) {
	s, held, release := closing(t)
	b := connect(t, Config{URL: s.URL})
	s.settled(b)
	b.send(request(2, "slow"), request(3, "slow"))
	receive(t, held, "call")
	receive(t, held, "call")
	_ = s.Listener.Close()
	const note = `{"jsonrpc":"2.0","method":"notifications/x"}`
	b.send(request(4, "a"), note, request(5, "a"))
	refused := map[string]bool{b.next(): true, b.next(): true}
	for id := 4; id < 6; id++ {
		if want := refusal(id, wire.RemoteUnreachable("far", unreached(s))); !refused[want] {
			t.Errorf("%s is not among %v", want, refused)
		}
	}
	close(release)
	answers := map[string]bool{b.next(): true, b.next(): true}
	if !answers[response(2, "slow")] || !answers[response(3, "slow")] {
		t.Errorf("the calls under way were answered %v", answers)
	}
	b.expectEnd("it cannot be reached: "+unreached(s), false)
}

// due lets the time pass that is left for calls under way; false where nothing bounds it.
func (l *leave) due() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.late != nil && l.late.Reset(0)
}

// Calls under way are waited for a short time.
func TestDrainBounded(t *testing.T) {
	s, held, _ := closing(t)
	b := newBroker(t)
	b.pace.drain = time.Hour
	b.start(Config{URL: s.URL})
	b.attach()
	s.settled(b)
	b.send(request(2, "slow"))
	receive(t, held, "call")
	_ = s.Listener.Close()
	b.send(request(3, "a"))
	b.expect(refusal(3, wire.RemoteUnreachable("far", unreached(s))))
	if leave := &b.driver.(*streamable).leave; !leave.due() {
		t.Error("the call under way is waited for without a bound")
	}
	b.expectEnd("it cannot be reached: "+unreached(s), false)
	equal(t, "the call under way", receive(t, held, "end of the call"), "cut off")
}

// A server that takes a new connection before the last call is over is not left.
func TestReachedAgain(t *testing.T) {
	s, held, release := closing(t)
	b := connect(t, Config{URL: s.URL})
	s.settled(b)
	b.send(request(2, "slow"))
	receive(t, held, "call")
	address := s.Listener.Addr().String()
	cause := unreached(s)
	_ = s.Listener.Close()
	b.send(request(3, "a"))
	b.expect(refusal(3, wire.RemoteUnreachable("far", cause)))
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, listener) // knows no session, so that another one is opened
	b.send(request(4, "b"))
	b.expect(response(4, "b"))
	close(release)
	b.expect(response(2, "slow"))
	b.send(request(5, "b"))
	b.expect(response(5, "b"))
	if len(b.owner) != 0 {
		t.Error("the connection has ended")
	}
}

// Over the older transport a call is under way until its answer is on the stream, however
// large that is.
func TestLegacyCallsUnderWay(t *testing.T) {
	const limit = 1 << 10
	s := newOlder(t)
	s.Config.SetKeepAlivesEnabled(false)
	b := connect(t, Config{URL: s.URL + "/sse", Limit: limit})
	for id := 2; id < 4; id++ {
		b.send(request(id, "slow"))
		s.took("/messages?session=1 " + request(id, "slow"))
	}
	_ = s.Listener.Close()
	cause := "dial tcp " + s.Listener.Addr().String() + ": connect: connection refused"
	b.send(request(4, "a"))
	b.expect(refusal(4, wire.RemoteUnreachable("far", cause)))
	s.out <- event(response(2, "slow"))
	b.expect(response(2, "slow"))
	s.out <- event(`{"jsonrpc":"2.0","id":"brk-3","result":"` + longText(2*limit) + `"}`)
	b.expect(refusal(3, wire.TooLarge(limit)))
	b.expectEnd("it cannot be reached: "+cause, false)
}

// A session that cannot be opened again is no reason to cut off other calls.
func TestLostSessionCallsUnderWay(t *testing.T) {
	s, held, release := closing(t)
	b := connect(t, Config{URL: s.URL})
	s.settled(b)
	b.send(request(2, "slow"))
	receive(t, held, "call")
	s.forget()
	s.set(func() {
		s.before = func(w http.ResponseWriter, r *http.Request, body []byte) bool {
			if r.Header.Get(sessionHeader) == "" {
				http.Error(w, "no", http.StatusServiceUnavailable)
			}
			return r.Header.Get(sessionHeader) == ""
		}
	})
	const lost = "its session was gone, and another one could not be opened: the server answered HTTP 503 Service Unavailable: no"
	b.send(request(3, "a"))
	b.expect(refusal(3, wire.RemoteUnreachable("far", lost)))
	close(release)
	b.expect(response(2, "slow"))
	b.expectEnd(lost, false)
}

// All who wait for another session share the attempt that fails.
func TestRenewShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &streamable{poster: &poster{link: &link{}}, renewing: make(chan struct{}, 1)}
		s.ctx = t.Context()
		s.renewing <- struct{}{}
		errs := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := s.renew(session{}, nil)
				errs <- err
			}()
		}
		time.Sleep(time.Second) // in which the attempt of another goes on
		want := &sessionLost{errors.New("no")}
		s.failed = failure{at: time.Now(), err: want}
		<-s.renewing
		for range 2 {
			if err := <-errs; err != want {
				t.Errorf("renew: %v, want the failure of the one attempt", err)
			}
		}
	})
}

// A client's initialize that is refused for the credentials costs itself only.
func TestSecondInitializeDenied(t *testing.T) {
	s := newServer(t)
	b := connect(t, Config{URL: s.URL})
	s.settled(b)
	s.set(func() {
		s.before = func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
			if r.Header.Get(sessionHeader) == "" {
				w.WriteHeader(http.StatusUnauthorized)
			}
			return r.Header.Get(sessionHeader) == ""
		}
	})
	b.send(initialize, request(3, "a"))
	b.expect(refusal(1, wire.RemoteDenied("far", "401 Unauthorized")), response(3, "a"))
}

// A cancelled call whose connection is still being made says nothing about the server.
func TestCancelledDial(t *testing.T) {
	p := &poster{link: &link{cfg: Config{Name: "far"}, pace: usualPace}}
	p.ctx, p.cancel = context.WithCancel(t.Context())
	f, err := wire.Scan([]byte(request(2, "a")))
	if err != nil {
		t.Fatal(err)
	}
	c := newCall(p.ctx, &f)
	c.stop(errWithdrawn)
	p.settle(c, unsent{context.Canceled})
	if p.ctx.Err() != nil || p.leave.cause != nil {
		t.Errorf("the connection ends: %v", p.leave.cause)
	}
}
