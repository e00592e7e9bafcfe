package egress_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"mcpbroker/brokertest"
)

// idleWorkers is more than the goroutines a quiet runtime kit keeps for its next
// jobs.
const idleWorkers = 32

// Spec 07 rows 22 and 23: 1,000 sessions of each kind are opened and ended, in
// the ways of their transport. Of none anything stays: no session, no goroutine,
// no file handle, no memory to speak of.
func TestSessionsLeaveNothing(t *testing.T) {
	b := quietBroker(t)
	b.Dedicated(t, "s")
	transport := &http.Transport{MaxIdleConnsPerHost: openers}
	defer transport.CloseIdleConnections()
	v := &visitor{b: b, http: &http.Client{Transport: transport}}
	kinds := []struct {
		name  string
		visit func(ctx context.Context, i int) error
	}{
		{"streamable", v.streamable}, {"sse", v.sse}, {"websocket", v.socket}, {"stdio", v.stdio},
	}
	settled := func(what string, before usage) usage {
		t.Helper()
		for _, slot := range []string{"s", "empty"} {
			b.Sessions(t, slot, 0)
			b.Pending(t, slot, 0)
		}
		transport.CloseIdleConnections()
		return settle(t, what, before)
	}
	for _, kind := range kinds {
		visits(t, 2*openers, kind.visit)
	}
	before := settled("a first round", usage{1 << 20, 1 << 20})
	memory := heapInUse()
	before.goroutines += idleWorkers
	for _, kind := range kinds {
		visits(t, 1000, kind.visit)
		settled("1,000 sessions over "+kind.name, before)
	}
	if after := heapInUse(); after > memory+4<<20 {
		t.Errorf("the heap grew by %d KiB", (after-memory)>>10)
	}
}

// openers is how many sessions are being opened at a time.
const openers = 20

func visits(t *testing.T, n int, visit func(ctx context.Context, i int) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*loadPatience) // a busy machine gets through, too
	defer cancel()
	var all sync.WaitGroup
	for worker := range openers {
		all.Go(func() {
			for i := worker; i < n; i += openers {
				if err := visit(ctx, i); err != nil {
					t.Errorf("session %d: %v", i, err)
					return
				}
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// visitor opens and ends sessions. Every second one is not like the others.
type visitor struct {
	b    *brokertest.Broker
	http *http.Client
}

// streamable uses a slot without a provider: an initialize that fails opens a
// session all the same.
func (v *visitor) streamable(ctx context.Context, i int) error {
	resp, err := v.do(ctx, http.MethodPost, v.b.MCPURL("empty"), "", brokertest.InitializeFrame)
	if err != nil {
		return err
	}
	id := resp.Header.Get("Mcp-Session-Id")
	_ = resp.Body.Close()
	if i%2 == 1 {
		listening, leave := context.WithCancel(ctx)
		defer leave()
		stream, err := v.do(listening, http.MethodGet, v.b.MCPURL("empty"), id, "")
		if err != nil {
			return err
		}
		defer stream.Body.Close()
	}
	end, err := v.do(ctx, http.MethodDelete, v.b.MCPURL("empty"), id, "")
	if err != nil {
		return err
	}
	defer end.Body.Close()
	if end.StatusCode != http.StatusNoContent {
		return fmt.Errorf("DELETE: %s", end.Status)
	}
	return nil
}

func (v *visitor) do(ctx context.Context, method, url, session, body string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	resp, err := v.http.Do(r)
	if err != nil {
		return nil, err
	}
	if method == http.MethodPost {
		_, err = io.Copy(io.Discard, resp.Body)
	}
	if err != nil {
		_ = resp.Body.Close()
	}
	return resp, err
}

func (v *visitor) sse(ctx context.Context, _ int) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	resp, err := v.do(ctx, http.MethodGet, v.b.SSEURL("s"), "", "")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = bufio.NewReader(resp.Body).ReadString('\n')
	return err
}

func (v *visitor) socket(ctx context.Context, i int) error {
	conn, err := dialSocket(ctx, v.b.ClientURL("s"))
	if err != nil {
		return err
	}
	defer conn.Close()
	if i%2 == 1 {
		return nil
	}
	bye := brokertest.AppendFrame(nil, 0x80|brokertest.OpClose, []byte{1000 >> 8, 1000 & 0xFF})
	if _, err := conn.Write(bye); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, conn)
	return err
}

func (v *visitor) stdio(ctx context.Context, i int) error {
	in, host := io.Pipe()
	done, err := v.b.ServeStdio(ctx, "s", in, io.Discard)
	if err != nil {
		return err
	}
	if i%2 == 1 {
		_, _ = io.WriteString(host, "junk\n")
	}
	_ = host.Close()
	<-done
	return nil
}
