package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
)

// eventKind is what a provider sees happen to its connection.
type eventKind string

const (
	eventOpen    eventKind = "open"
	eventClosed  eventKind = "closed"
	eventRefused eventKind = "refused" // of one slot of a tunnel, which stays open
	eventFailed  eventKind = "failed"  // the connection never opened
)

type event struct {
	kind eventKind
	code int
	text string // reason of a close, message of a refusal, cause of a failure
}

func (e event) String() string {
	switch {
	case e.kind == "":
		return "nothing"
	case e.code == 0 && e.text == "":
		return string(e.kind)
	case e.code == 0:
		return fmt.Sprintf("%s: %s", e.kind, e.text)
	case e.text == "":
		return fmt.Sprintf("%s %d", e.kind, e.code)
	}
	return fmt.Sprintf("%s %d %q", e.kind, e.code, e.text)
}

// peer is a provider of a script.
type peer struct {
	id    string
	valve *valve
	link  link
	show  func(string)

	events feed[event]
	frames feed[frame] // for the script; the SDK's server handles the others

	pings, pongs atomic.Int64 // see settle
}

// link is how a peer reaches the broker.
type link interface {
	// open begins to connect; what comes of it is an event.
	open(ctx context.Context, p *peer)
	send(ctx context.Context, frame []byte) error
	// answersPings tells whether the broker answers a ping of the script on it.
	answersPings() bool
	// close says goodbye and returns once the connection is gone.
	close(code int, reason string)
	// cut ends everything without a word and waits for it.
	cut()
}

func (p *peer) emit(e event) {
	if e.kind == eventRefused && e == p.events.last() {
		return // the claim was repeated by a frame of ours, see settle
	}
	p.show(p.id + ": " + e.String())
	p.events.add(e)
}

// pingID is the id of a peer's pings to the broker, %d the number.
const pingID = `"settle-%d"`

// settle returns once the broker has decided about the peer: a socket is open
// before its slot is granted, and the slot's holder alone has its ping answered.
func (p *peer) settle(ctx context.Context) error {
	n := p.pings.Add(1)
	// A failure means that the connection has ended, which is an event.
	_ = p.link.send(ctx, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":`+pingID+`,"method":"ping"}`, n))
	return p.events.wait(ctx, func() bool { return p.pongs.Load() >= n || p.events.taken < len(p.events.items) })
}

// ponged reports that a frame answers a ping of settle.
func (p *peer) ponged(f frame) bool {
	var n int64
	if f.method != "" {
		return false
	}
	if _, err := fmt.Sscanf(string(f.id), pingID, &n); err != nil {
		return false
	}
	p.pongs.Store(n)
	p.events.nudge()
	return true
}

// frame is a message a peer received.
type frame struct {
	text    string
	id      json.RawMessage // nil for a notification
	method  string
	tool    string
	token   json.RawMessage // progress token of a request
	about   json.RawMessage // progress token of a notification
	request json.RawMessage // of a cancellation
}

// frameOf reads what scripts ask about; what is not JSON-RPC has only a text.
func frameOf(text []byte) frame {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Name      string          `json:"name"`
			RequestID json.RawMessage `json:"requestId"`
			About     json.RawMessage `json:"progressToken"`
			Meta      struct {
				Token json.RawMessage `json:"progressToken"`
			} `json:"_meta"`
		} `json:"params"`
	}
	_ = json.Unmarshal(text, &m)
	return frame{
		text: string(text), id: m.ID, method: m.Method, tool: m.Params.Name,
		token: m.Params.Meta.Token, about: m.Params.About, request: m.Params.RequestID,
	}
}

// request is a received request that the script answers by hand.
type request struct {
	peer     *peer
	frame    frame
	reported int
}

// answer sends a result: the one given, else one of a tool with this text.
func (q *request) answer(ctx context.Context, given map[string]any, text string) error {
	if given == nil {
		given = map[string]any{"content": []any{map[string]string{"type": "text", "text": text}}}
	}
	result, err := json.Marshal(given)
	if err != nil {
		return err
	}
	return q.peer.link.send(ctx, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, q.frame.id, result))
}

func (q *request) progress(ctx context.Context) error {
	if len(q.frame.token) == 0 {
		return fmt.Errorf("the caller gave no progress token; call with progress = true")
	}
	q.reported++
	return q.peer.link.send(ctx, fmt.Appendf(nil,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, q.frame.token, q.reported))
}

// held collects the calls of the tool "hold", which the script answers, and
// what happens to them.
type held struct {
	mu  sync.Mutex
	ids map[string]bool
}

// takes reports that a frame is for the script.
func (h *held) takes(f frame) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case f.method == "tools/call" && f.tool == "hold":
		if h.ids == nil {
			h.ids = map[string]bool{}
		}
		h.ids[string(f.id)] = true
		return true
	case f.method == "notifications/cancelled":
		return h.ids[string(f.request)]
	}
	return false
}
