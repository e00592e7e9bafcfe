package scenarios

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"mcpbroker"
	"mcpbroker/actors/msg"
	"mcpbroker/provider"
)

// embedded is a broker in the runner's own process. It can be looked into, and
// made to fail.
type embedded struct {
	*mcpbroker.Broker
	wire *tripwire
	done chan struct{}
	once sync.Once
}

// startEmbedded starts a broker in this process.
func startEmbedded(ctx context.Context, port int, beat time.Duration, table map[string]any, log *feed[string], show func(string)) (*embedded, error) {
	e := &embedded{wire: &tripwire{slots: map[string]string{}}, done: make(chan struct{})}
	options := []mcpbroker.Option{
		mcpbroker.WithHost("127.0.0.1"), mcpbroker.WithPort(port), mcpbroker.WithProviderHeartbeatInterval(beat),
		mcpbroker.WithLogger(slog.New(&logHandler{log, show})), mcpbroker.WithTap(e.wire.tap),
	}
	for key, value := range table {
		options = append(options, embeddedKeys()[key](value))
	}
	var err error
	if e.Broker, err = mcpbroker.New(options...); err != nil {
		return nil, err
	}
	if err := e.Start(ctx); err != nil {
		return nil, fmt.Errorf("start the broker: %w", err)
	}
	return e, nil
}

// embeddedKeys are the configuration keys a broker in this process takes. The
// values have been checked with embeddedValue.
func embeddedKeys() map[string]func(value any) mcpbroker.Option {
	ms := func(value any) time.Duration { n, _ := value.(int64); return time.Duration(n) * time.Millisecond }
	return map[string]func(any) mcpbroker.Option{
		"providerHeartbeatIntervalMs": func(v any) mcpbroker.Option { return mcpbroker.WithProviderHeartbeatInterval(ms(v)) },
		"providerRequestTimeoutMs":    func(v any) mcpbroker.Option { return mcpbroker.WithProviderRequestTimeout(ms(v)) },
		"providerTakeover": func(v any) mcpbroker.Option {
			mode, _ := v.(string)
			return mcpbroker.WithProviderTakeover(mode)
		},
	}
}

func (e *embedded) exited() <-chan struct{} { return e.done }

func (e *embedded) stop(ctx context.Context) error {
	err := e.Stop(ctx)
	e.once.Do(func() { close(e.done) })
	if err != nil {
		return fmt.Errorf("stop the broker: %w", err)
	}
	return nil
}

// kill stops a broker that cannot be killed without the runner.
func (e *embedded) kill() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = e.stop(ctx)
}

// attacher gives loopback providers the broker that runs at present.
type attacher struct{ r *runner }

// AttachLoopback implements provider.Attacher.
func (a attacher) AttachLoopback(slot string, aggregate *bool, peer provider.Peer) (provider.Port, error) {
	e, err := a.r.inside()
	if err != nil {
		return nil, err
	}
	return e.Broker.AttachLoopback(slot, aggregate, peer)
}

// tripwire makes slot actors panic. It learns which actor serves which slot from
// the messages that name the slot.
type tripwire struct {
	mu    sync.Mutex
	slots map[string]string // actor id to slot name
	armed []trip
}

// trip is one panic to come: in the actor of slot, on the next message of a kind.
type trip struct {
	slot   string
	answer bool   // the provider's answer instead of a client's request
	method string // of the request
}

func (w *tripwire) arm(t trip) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed = append(w.armed, t)
}

// tap sees each message before its actor does.
func (w *tripwire) tap(actor string, message any) {
	if !strings.Contains(actor, "/slot-") {
		return
	}
	if w.sprung(actor, message) {
		panic("injected by the scenario")
	}
}

func (w *tripwire) sprung(actor string, message any) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch m := message.(type) {
	case *msg.JoinSlot:
		w.slots[actor] = m.Slot
	case *msg.ClaimSlot:
		w.slots[actor] = m.Slot
	case *msg.ClientCall:
		return w.spring(trip{slot: w.slots[actor], method: string(m.Frame.Method)})
	case *msg.ProviderFrame:
		return m.Frame.IsResponse() && w.spring(trip{slot: w.slots[actor], answer: true})
	}
	return false
}

// spring disarms t if it is armed.
func (w *tripwire) spring(t trip) bool {
	for i, armed := range w.armed {
		if armed == t {
			w.armed = append(w.armed[:i], w.armed[i+1:]...)
			return true
		}
	}
	return false
}

// logHandler collects the broker's log as its text form shows it, without
// attributes.
type logHandler struct {
	log  *feed[string]
	show func(string)
}

// Enabled implements slog.Handler.
func (h *logHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo
}

// Handle implements slog.Handler.
func (h *logHandler) Handle(_ context.Context, r slog.Record) error {
	h.log.add(r.Message)
	h.show(r.Message)
	return nil
}

// WithAttrs implements slog.Handler.
func (h *logHandler) WithAttrs([]slog.Attr) slog.Handler { return h }

// WithGroup implements slog.Handler.
func (h *logHandler) WithGroup(string) slog.Handler { return h }
