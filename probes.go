package mcpbroker

import (
	"context"
	"net/http"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
	"mcpbroker/egress"
	"mcpbroker/reserved/guide"
)

// beside is what is served beside the slots. Whoever watches the process asks
// healthz, whoever sends it traffic readyz.
func (b *Broker) beside(run *running) map[string]http.HandlerFunc {
	paths := map[string]http.HandlerFunc{}
	add := func(path string, handler http.HandlerFunc) {
		if path != "" {
			paths[path] = handler
		}
	}
	add(b.config.Paths.Healthz, func(w http.ResponseWriter, _ *http.Request) { answerText(w, http.StatusOK, "ok\n") })
	add(b.config.Paths.Readyz, func(w http.ResponseWriter, r *http.Request) {
		if why := b.notReady(r.Context(), run); why != "" {
			answerText(w, http.StatusServiceUnavailable, why+"\n")
			return
		}
		answerText(w, http.StatusOK, "ready\n")
	})
	add(b.config.Paths.LLMs, func(w http.ResponseWriter, r *http.Request) {
		if refusal := egress.CheckOrigin(b.config.AllowedOrigins, r.Header["Origin"], egress.Endpoint(r)); refusal != "" {
			egress.FailOrigin(w, refusal)
			return
		}
		answerText(w, http.StatusOK, guide.LLMs(b.guideConfig(run)))
	})
	return paths
}

func answerText(w http.ResponseWriter, status int, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text))
}

// readyPatience is how long a reserved slot may take to answer for itself.
const readyPatience = time.Second

// notReady says why the broker is not to be sent traffic; empty when it may be.
func (b *Broker) notReady(ctx context.Context, run *running) string {
	b.mu.Lock()
	state := b.state
	b.mu.Unlock()
	if state != started {
		return "the broker is stopping"
	}
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	if run.aggregate != nil && !run.serves(ctx, wire.SlotAggregate) {
		return "the slot " + wire.SlotAggregate + " does not answer"
	}
	if run.introspection != nil && !run.serves(ctx, wire.SlotBroker) {
		return "the slot " + wire.SlotBroker + " does not answer"
	}
	return ""
}

func (run *running) serves(ctx context.Context, slot string) bool {
	reply := make(chan msg.SlotInfo, 1)
	run.registry.Send(&msg.DescribeSlot{Slot: slot, Reply: reply})
	select {
	case info, ok := <-reply:
		return ok && info.Connected
	case <-ctx.Done():
		return false
	}
}
