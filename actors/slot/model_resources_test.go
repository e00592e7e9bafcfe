package slot

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"mcpbroker/actors/mcp"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
)

// resources is what the peers of a slot know of subscriptions and of requests the
// provider opened.
type resources struct {
	about    map[string]resourceCall    // subscribe and unsubscribe calls, by callName
	watching map[string]map[string]bool // client and URI, as confirmed to the client

	upstream map[string]uint64 // URI to the broker's request about it that is in flight
	unsolved map[uint64]string // requests the provider could still answer, to their URI
	held     map[string]bool   // URIs the provider has subscribed, or may have

	opened map[string]bool   // raw ids of requests the provider waits for
	asked  map[uint64]string // what a client was asked and could still answer, to the client
}

type resourceCall struct {
	uri       string
	subscribe bool
}

func newResources() *resources {
	r := &resources{about: map[string]resourceCall{}, watching: map[string]map[string]bool{}}
	r.newProvider()
	return r
}

// newProvider forgets what the last one was asked and asked for.
func (r *resources) newProvider() {
	r.upstream, r.unsolved, r.held = map[string]uint64{}, map[uint64]string{}, map[string]bool{}
	r.opened = map[string]bool{}
}

func (r *resources) called(m *msg.ClientCall) {
	if isSubscription(m.Frame.Method) {
		r.about[callName(m.Session, m.Call)] = resourceCall{resourceURI(&m.Frame), string(m.Frame.Method) == mcp.Subscribe}
	}
}

// fromProvider notes what the present provider has just sent.
func (r *resources) fromProvider(f *wire.Frame) {
	switch {
	case f.IsRequest():
		r.opened[string(f.Raw(f.ID))] = true
	case string(f.Method) == mcp.Cancelled:
		delete(r.opened, string(f.Raw(f.RequestID)))
	case f.IsResponse():
		id, _ := wire.ParseBrokerID(f.Raw(f.ID))
		uri, ok := r.unsolved[id]
		if ok && !f.Result.Present() && r.upstream[uri] == id {
			delete(r.held, uri)
		}
		r.settled(id)
	}
}

// settled: the slot does not wait for this request of its own any more.
func (r *resources) settled(id uint64) {
	if uri := r.unsolved[id]; r.upstream[uri] == id {
		delete(r.upstream, uri)
	}
	delete(r.unsolved, id)
}

// toProvider checks what the slot sends.
func (r *resources) toProvider(t *rapid.T, frame []byte) {
	t.Helper()
	f := mustScan(string(frame))
	switch {
	case f.IsResponse():
		id := string(f.Raw(f.ID))
		if !r.opened[id] {
			t.Fatalf("%s is answered, but does not wait for it", id)
		}
		delete(r.opened, id)
	case string(f.Method) == mcp.Cancelled:
		if id, ok := wire.ParseBrokerID(f.Raw(f.RequestID)); ok {
			r.settled(id)
		}
	case isSubscription(f.Method):
		uri := resourceURI(&f)
		if before := r.upstream[uri]; before != 0 {
			t.Fatalf("%s is asked for while brk-%d is in flight", uri, before)
		}
		id, _ := wire.ParseBrokerID(f.Raw(f.ID))
		r.upstream[uri], r.unsolved[id] = id, uri
		if r.held[uri] = true; string(f.Method) == mcp.Unsubscribe {
			delete(r.held, uri)
		}
	}
}

// confirmed: a client has its answer.
func (r *resources) confirmed(client, call string, frame []byte) {
	c, ok := r.about[call]
	if !ok || wire.Member(frame, "result") == nil {
		return
	}
	if r.watching[client] == nil {
		r.watching[client] = map[string]bool{}
	}
	r.watching[client][c.uri] = c.subscribe
}

func (r *resources) notified(t *rapid.T, client string, frame []byte) {
	t.Helper()
	f := mustScan(string(frame))
	if uri := resourceURI(&f); string(f.Method) == mcp.ResourceUpdated && !r.watching[client][uri] {
		t.Fatalf("%s hears of %s, to which it has not subscribed", client, uri)
	}
}

func (r *resources) clientAsked(t *rapid.T, client string, m *msg.ClientAsk) {
	t.Helper()
	if _, twice := r.asked[m.ID]; twice {
		t.Fatalf("brk-%d is asked twice", m.ID)
	}
	if r.asked == nil {
		r.asked = map[uint64]string{}
	}
	r.asked[m.ID] = client
}

func (r *resources) askCancelled(t *rapid.T, client string, m *msg.AskCancelled) {
	t.Helper()
	f := mustScan(string(m.Frame))
	id, _ := wire.ParseBrokerID(f.Raw(f.RequestID))
	if r.asked[id] != client {
		t.Fatalf("%s is told that brk-%d is cancelled, which it was not asked", client, id)
	}
	delete(r.asked, id)
}

// desert lets every session leave and the provider answer what it was asked: then
// nothing is held for anybody, and the provider waits for nothing.
func (m *model) desert(t *rapid.T, step func(any)) {
	t.Helper()
	for session := range uint64(4) {
		step(&msg.LeaveSlot{Session: session + 1})
	}
	if m.holder == nil {
		return
	}
	for rounds := 0; len(m.upstream) > 0; rounds++ {
		if rounds == 10 {
			t.Fatalf("the slot keeps asking for %v", m.upstream)
		}
		for _, id := range m.upstream {
			frame := mustScan(fmt.Sprintf(`{"jsonrpc":"2.0","id":"brk-%d","result":{}}`, id))
			step(&msg.ProviderFrame{Gen: m.gen, Frame: frame, Credit: &credit{"last"}})
			break // the map has changed
		}
	}
	if len(m.held) > 0 {
		t.Fatalf("the provider still holds %v", m.held)
	}
	if len(m.opened) > 0 {
		t.Fatalf("the provider still waits for %v", m.opened)
	}
	if text := strings.Join(snapshot(m.state), "\n"); strings.Contains(text, "\nsubscription ") {
		t.Fatalf("subscriptions of nobody:\n%s", text)
	}
}
