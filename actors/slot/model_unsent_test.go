package slot

import (
	"strconv"
	"strings"

	"pgregory.net/rapid"

	"mcpbroker/actors/wire"
)

// deliveries is what is known of each call's way to providers. Calls have a name of
// their own among their params.
type deliveries struct {
	sent   map[string][][]byte // the frames of a call, by its name
	unsent map[uint64]bool     // broker ids of frames that were never written
	last   uint64              // broker id of the first try of what was last tried again
}

func newDeliveries() *deliveries {
	return &deliveries{sent: map[string][][]byte{}, unsent: map[uint64]bool{}}
}

// lost notes what was never written.
func (d *deliveries) lost(frames [][]byte) {
	for _, frame := range frames {
		f := mustScan(string(frame))
		if id, ok := wire.ParseBrokerID(f.Raw(f.ID)); ok {
			d.unsent[id] = true
		}
	}
}

// deliver checks that a call goes to a second provider only if the first was never
// written, as it was, and in the order of the first tries.
func (d *deliveries) deliver(t *rapid.T, frame []byte) {
	t.Helper()
	f := mustScan(string(frame))
	name := string(wire.Member(f.Raw(f.Params), "name"))
	if name == "" {
		return
	}
	before := d.sent[name]
	d.sent[name] = append(before, frame)
	switch len(before) {
	case 0:
		return
	case 2:
		t.Fatalf("%s is sent a third time", name)
	}
	first := mustScan(string(before[0]))
	id, _ := wire.ParseBrokerID(first.Raw(first.ID))
	if !d.unsent[id] {
		t.Fatalf("%s is sent again, although it may have been written as brk-%d", name, id)
	}
	as := strings.ReplaceAll(string(frame), string(f.Raw(f.ID)), strconv.Quote("brk-"+strconv.FormatUint(id, 10)))
	if as != string(before[0]) {
		t.Fatalf("%s is sent as\n%s\nand then as\n%s", name, before[0], frame)
	}
	if id < d.last {
		t.Fatalf("brk-%d is tried again behind brk-%d", id, d.last)
	}
	d.last = id
}
