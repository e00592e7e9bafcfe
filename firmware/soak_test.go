package firmware

import (
	"flag"
	"runtime"
	"testing"
	"time"

	"mcpbroker/actors/msg"
	"mcpbroker/brokertest"
)

var soak = flag.Duration("soak", 3*time.Second, "how long TestSoak runs")

// spec 04 11: rounds of fresh sessions against a dedicated device and a plant, no
// failure, and nothing that grows. Bounded in time and in rounds; longer by hand.
func TestSoak(t *testing.T) {
	const mostRounds = 1 << 20
	// Bytes of heap. The actor system keeps its processes in 32768 maps, each of which
	// allocates once: some 9 MiB that fill slowly and then stay.
	const growth = 12 << 20
	b := startHere(t)
	device := startDevice(t, port(b.Host()), "--name", "pump-0", "--quiet")
	plant := startPlant(t, port(b.Host()), "--devices=8", "--quiet")
	device.awaitConnect(1)
	plant.awaitConnect(1)
	slots := []string{"pump-0", "pump-1", "pump-8"}
	sessions := map[string]*session{} // each is begun again in every round
	for _, slot := range slots {
		sessions[slot] = &session{t: t, client: brokertest.NewClient(t, b.MCPURL(slot))}
	}

	round := func(text string) {
		t.Helper()
		for _, slot := range slots {
			s := sessions[slot]
			s.begin(slot)
			if names, _ := s.tools(); names != "echo read_status set_speed" {
				t.Fatalf("tools of %s: %s", slot, names)
			}
			s.echo(slot, text)
			if a := s.client.Do("DELETE", ""); a.Status != 204 {
				t.Fatalf("end a session: %d %s", a.Status, a.Body)
			}
		}
	}
	round("warm")
	before := heap()
	rounds := 0
	for until := time.Now().Add(*soak); rounds < mostRounds && time.Now().Before(until); rounds++ {
		round("round and round")
		if t.Failed() {
			t.FailNow()
		}
	}
	after := heap()
	t.Logf("%d rounds in %s; heap %d KiB, then %d KiB", rounds, *soak, before>>10, after>>10)
	if rounds == 0 || after > before+growth {
		t.Errorf("%d rounds; the heap went from %d to %d bytes", rounds, before, after)
	}
	expectIdle(t, b, slots)
	for _, p := range []*process{device, plant} {
		if n := p.count("^event "); n != 1 {
			t.Errorf("%s reported %d events", p.name, n)
		}
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// expectIdle waits until a slot has neither sessions nor calls.
func expectIdle(t *testing.T, b *brokertest.Broker, slots []string) {
	t.Helper()
	for _, slot := range slots {
		b.WaitSlot(t, slot, func(i msg.SlotInfo) bool { return i.Connected && i.SessionCount == 0 && i.PendingCount == 0 })
	}
}
