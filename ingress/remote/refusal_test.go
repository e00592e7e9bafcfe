package remote

import (
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/rt"
	"mcpbroker/actors/wire"
)

// What the broker itself answers in the place of the server is no word of the server,
// and is not posted as one; an error of the server's own is, whatever the status.
func TestWhoseWord(t *testing.T) {
	const own = `{"jsonrpc":"2.0","id":"brk-2","error":{"code":-32602,"message":"no such tool"}}`
	for _, c := range []struct {
		status int
		body   string
		want   *wire.Error // nil is the server's own
	}{
		{503, "away", wire.RemoteRefused("far", "503 Service Unavailable", "away")},
		{401, own, wire.RemoteDenied("far", "401 Unauthorized")},
		{500, "not with hush-hush", wire.RemoteRefused("far", "500 Internal Server Error", "not with ***")},
		{200, longText(2 << 10), wire.TooLarge(1 << 10)},
		{400, own, nil},
		{200, own, nil},
	} {
		s := newServer(t)
		b := connect(t, Config{URL: s.URL, Limit: 1 << 10, Headers: map[string]string{"X-Key": "hush-hush"}})
		s.settled(b)
		s.set(func() {
			s.call = func(w http.ResponseWriter, _ *http.Request, _ *wire.Frame) {
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}
		})
		b.send(request(2, "a"))
		switch m := receive(t, b.slot, "answer").(type) {
		case *msg.ProviderRefusal:
			if diff := cmp.Diff(c.want, m.Err); diff != "" || string(m.ID) != `"brk-2"` || m.Gen != slotGen || len(m.Credit.(rt.Credits)) != 1 {
				t.Errorf("%d %s: refused %s of generation %d (-want +got):\n%s", c.status, c.body, m.ID, m.Gen, diff)
			}
		case *msg.ProviderFrame:
			if c.want != nil || string(m.Frame.Bytes) != own {
				t.Errorf("%d %s: answered %s", c.status, c.body, m.Frame.Bytes)
			}
		default:
			t.Errorf("%d %s: %T", c.status, c.body, m)
		}
	}
}

// That a server has too much to do is no fault of it, and the refusal says so.
func TestBusyRefusal(t *testing.T) {
	slot := make(mailbox, 1)
	p := &poster{link: newLink(nil, Config{Name: "far"}, nil, ownGen, usualPace)}
	p.Attach(slot, slotGen)
	defer p.cancel()
	p.calls.running, p.calls.waiting, p.calls.bytes = maxRunning, make([]*call, 1), maxWaitingBytes
	f, err := wire.Scan([]byte(request(2, "a")))
	if err != nil {
		t.Fatal(err)
	}
	p.request(newCall(p.ctx, &f))
	if m, ok := receive(t, slot, "refusal").(*msg.ProviderRefusal); !ok || !m.Err.Busy {
		t.Errorf("the slot got %+v", m)
	}
}
