package mcpbroker

import (
	"context"
	"fmt"
	"io"
	"strings"

	"mcpbroker/actors/rt"
	"mcpbroker/actors/wire"
)

// ServeStdio bridges newline-delimited JSON-RPC on in and out to a slot, for a
// host that started this process (spec 01 5.7). It returns once messages are taken;
// ctx bounds that only. done is closed when the bridge has ended: in has ended and
// the answers owed are written, which are waited for up to 5 s; or out has failed;
// or the broker stops. in and out stay the caller's: a Read or Write that blocks
// when the bridge ends is left behind.
//
// A slot without a provider is worth a warning, no error: one may come later.
func (b *Broker) ServeStdio(ctx context.Context, slot string, in io.Reader, out io.Writer) (done <-chan struct{}, err error) {
	b.mu.Lock()
	run, state := b.run, b.state
	b.mu.Unlock()
	if state != started {
		return nil, rt.ErrStopped
	}
	if warning := b.strayTarget(ctx, slot); warning != "" {
		b.log.Warn(warning)
	}
	done, err = run.stdio.Serve(ctx, slot, in, out)
	if err != nil {
		return nil, fmt.Errorf("bridge standard input and output: %w", err)
	}
	return done, nil
}

// strayTarget warns about a bridge to a slot nobody serves yet (spec 01 8.3).
func (b *Broker) strayTarget(ctx context.Context, target string) string {
	if target == wire.SlotAggregate || target == wire.SlotBroker {
		return ""
	}
	slots, err := b.Slots(ctx)
	if err != nil {
		return ""
	}
	hosted := []string{}
	for _, s := range slots {
		if s.Connected && s.Name == target {
			return ""
		}
		if s.Connected && !wire.Reserved(s.Name) {
			hosted = append(hosted, s.Name)
		}
	}
	list := "none yet"
	if len(hosted) > 0 {
		list = strings.Join(hosted, ", ")
	}
	return fmt.Sprintf(`[mcp-broker] MCP_BROKER_STDIO_PROVIDER="%s" names a slot this broker does not host. A host that initializes before a provider takes it gets an error and may give up; set it to "_all" to reach every provider that joins. Hosted slots: %s.`,
		target, list)
}
