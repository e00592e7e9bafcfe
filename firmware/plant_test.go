package firmware

import (
	"fmt"
	"testing"

	"mcpbroker/actors/msg"
)

// Many simulated pumps share one socket, and nothing else: each has its slot, its
// state and its callers.
func TestPlant(t *testing.T) {
	t.Parallel()
	const devices = 60
	b := startHere(t)
	plant := startPlant(t, port(b.Host()), fmt.Sprint("--devices=", devices), "--quiet")
	plant.awaitConnect(1)
	b.Connected(t, fmt.Sprint("pump-", devices))
	if n := len(b.Log.Lines("ws connect", "multiplex-provider")); n != 1 {
		t.Errorf("%d sockets, want 1", n)
	}
	status := func(i, rpm int) string { return fmt.Sprintf(`{"speed_rpm":%d,"running":%t}`, rpm, rpm > 0) }
	sessions := map[int]*session{}
	for _, i := range []int{1, 7, 30, devices} {
		slot := fmt.Sprint("pump-", i)
		s := open(t, b.MCPURL(slot), slot)
		sessions[i] = s
		if got, want := s.call("set_speed", fmt.Sprintf(`{"speed_rpm":%d}`, 10*i)), status(i, 10*i); got != want {
			t.Errorf("%s: %s, want %s", slot, got, want)
		}
	}
	for i, s := range sessions {
		if got, want := s.call("read_status", `{}`), status(i, 10*i); got != want {
			t.Errorf("pump-%d: %s, want %s", i, got, want)
		}
	}
	for i := 1; i <= devices; i++ {
		slot := fmt.Sprint("pump-", i)
		b.WaitSlot(t, slot, func(info msg.SlotInfo) bool { return info.Connected && string(info.Transport) == "ws-multiplex" })
	}
}

// one slot is refused, in words, and the others serve.
func TestPlantSlotHeld(t *testing.T) {
	t.Parallel()
	b := startHere(t)
	holder := startDevice(t, port(b.Host()), "--name", "pump-2")
	holder.awaitConnect(1)
	plant := startPlant(t, port(b.Host()), "--devices=3")
	plant.awaitConnect(1)
	plant.next(`^event SLOT_REFUSED slot="pump-2" rpc_code=-32000 reason="Provider \\"pump-2\\" is already connected\..*"`)
	for _, slot := range []string{"pump-1", "pump-2", "pump-3"} {
		open(t, b.MCPURL(slot), slot).echo(slot, "hello")
	}
	holder.next(`^in pump-2 .*hello`)
	if n := plant.count(disconnected); n != 0 {
		t.Errorf("the plant lost its link %d times", n)
	}
}
