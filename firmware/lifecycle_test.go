package firmware

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcpbroker"
	"mcpbroker/brokertest"
)

func startHere(t *testing.T, options ...mcpbroker.Option) *brokertest.Broker {
	t.Helper()
	return brokertest.Start(t, brokertest.Options{Configure: options})
}

const heldReason = `error="[^"]+" code=1008 reason="Slot already held by a live provider; call provider_status on _broker\. Slot: \\"pump-1\\""`

// a slot held by another is refused after the handshake, and the waits
// grow although every attempt got that far. The holder never notices.
func TestSlotHeld(t *testing.T) {
	t.Parallel()
	b := startHere(t)
	holder := startDevice(t, port(b.Host()), "--name", "pump-1")
	holder.awaitConnect(1)
	second := startDevice(t, port(b.Host()), "--name", "pump-1", "--no-jitter", "--retry-initial=50")
	for i, wait := range []int{50, 100, 200, 400, 400} {
		second.awaitConnect(i + 1)
		second.next(fmt.Sprintf(`%s%s.* next_retry_ms=%d$`, disconnected, heldReason, wait))
	}
	s := open(t, b.MCPURL("pump-1"), "pump-1")
	s.echo("pump-1", "still here")
	if n := holder.count("^event "); n != 1 {
		t.Errorf("the holder reported %d events", n)
	}
	// only a link that carries something brings the floor back.
	holder.kill()
	second.awaitServed("pump-1")
	s = open(t, b.MCPURL("pump-1"), "pump-1")
	s.echo("pump-1", "its successor")
	b.Stop(t)
	second.next(disconnected + `.*code=1001 .*next_retry_ms=50$`)
}

// with the random wait, one after a refusal is at least half of the window.
func TestSlotHeldJitter(t *testing.T) {
	t.Parallel()
	b := startHere(t)
	startDevice(t, port(b.Host()), "--name", "pump-1").awaitConnect(1)
	second := startDevice(t, port(b.Host()), "--name", "pump-1", "--retry-initial=40", "--retry-max=320")
	for _, window := range []int{40, 80, 160, 320, 320} {
		m := second.next(disconnected + heldReason + `.* next_retry_ms=(\d+)$`)
		if wait := number(t, m[1]); wait < window/2 || wait > window {
			t.Errorf("waits %d ms, want %d to %d", wait, window/2, window)
		}
	}
}

// spec 04 15: a device that hangs is half open; the heartbeat proves it, and a
// newcomer takes its slot.
func TestHalfOpenTakeover(t *testing.T) {
	t.Parallel()
	// Long enough for a busy machine to let the newcomer answer its own heartbeats.
	b := startHere(t, mcpbroker.WithProviderHeartbeatInterval(4*time.Second))
	first := startDevice(t, port(b.Host()), "--name", "pump-1")
	first.awaitConnect(1)
	first.signal(syscall.SIGSTOP)
	second := startDevice(t, port(b.Host()), "--name", "pump-1")
	b.Log.Wait(t, "pump-1", "heartbeat")
	open(t, b.MCPURL("pump-1"), "pump-1").echo("pump-1", "the newcomer")
	second.next(`^in pump-1 .*the newcomer`)
	first.signal(syscall.SIGCONT)
	first.next(disconnected)
	first.next(disconnected + heldReason)
}

// A hanging device costs a caller the deadline, and no more: what it answers later
// reaches nobody, and the next call is served.
func TestDeadline(t *testing.T) {
	t.Parallel()
	b := startHere(t, mcpbroker.WithProviderHeartbeatInterval(0), mcpbroker.WithProviderRequestTimeout(4*time.Second))
	device := startDevice(t, port(b.Host()), "--name", "pump-1")
	device.awaitConnect(1)
	s := open(t, b.MCPURL("pump-1"), "pump-1")
	device.signal(syscall.SIGSTOP)
	r := s.request("tools/call", `{"name":"echo","arguments":{"text":"late"}}`)
	if r.Error == nil || r.Error.Code != -32000 {
		t.Errorf("call of a hanging device: %s %+v", r.Result, r.Error)
	}
	device.signal(syscall.SIGCONT)
	device.next(`^out pump-1 .*late`)
	s.echo("pump-1", "in time")
	b.Pending(t, "pump-1", 0)
}

// a message larger than the device's buffer ends the connection with 1009, and
// the device comes back.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	b := startHere(t)
	device := startDevice(t, port(b.Host()), "--name", "pump-1", "--rx=4096")
	device.awaitConnect(1)
	s := open(t, b.MCPURL("pump-1"), "pump-1")
	for round := 1; round <= 2; round++ {
		s.echo("pump-1", strings.Repeat("x", 3000))
		r := s.request("tools/call", `{"name":"echo","arguments":{"text":"`+strings.Repeat("x", 5000)+`"}}`)
		if r.Error == nil || r.Error.Code != -32000 {
			t.Fatalf("call that does not fit: %.100s %+v", r.Result, r.Error)
		}
		device.next(disconnected + `error=".*(large|buffer).*" detail=".*next_retry_ms=`)
		b.Log.WaitN(t, round, `provider "pump-1" disconnected`, "it closed the connection with 1009")
		device.awaitServed("pump-1")
	}
	s.echo("pump-1", "recovered")
}

// R-32, spec 01 4.6: a device that comes back is subscribed to again, and its
// updates reach who asked before.
func TestSubscriptionReplay(t *testing.T) {
	t.Parallel()
	b := startHere(t)
	device := startDevice(t, port(b.Host()), "--name", "pump-1", "--rx=4096")
	device.awaitConnect(1)
	watcher := open(t, b.MCPURL("pump-1"), "pump-1")
	stream := watcher.client.Listen()
	if r := watcher.request("resources/subscribe", `{"uri":"device://status"}`); r.Error != nil {
		t.Fatalf("subscribe: %+v", r.Error)
	}
	other := open(t, b.MCPURL("pump-1"), "pump-1")
	const update = `"method":"notifications/resources/updated","params":{"uri":"device://status"`
	updated := func() {
		t.Helper()
		for {
			block := stream.Next()
			if block == "" {
				t.Fatal("no update has come")
			}
			if strings.Contains(block, update) {
				return
			}
		}
	}
	other.call("set_speed", `{"speed_rpm":1200}`)
	updated()

	_ = other.request("tools/call", `{"name":"echo","arguments":{"text":"`+strings.Repeat("x", 5000)+`"}}`)
	device.next(disconnected)
	device.next(`^in pump-1 .*"resources/subscribe"`)
	updated() // the broker's own: what happened meanwhile is unknown
	other.call("set_speed", `{"speed_rpm":900}`)
	updated()
	if got, want := other.call("read_status", `{}`), `{"speed_rpm":900,"running":true}`; got != want {
		t.Errorf("status %s, want %s", got, want)
	}
}
