package provider

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

func message(size int) event { return event{kind: eventMessage, frame: make([]byte, size)} }

func kinds(in *inbox) (k []eventKind) {
	for {
		e, ok := in.get()
		if !ok {
			return k
		}
		k = append(k, e.kind)
	}
}

func TestInboxBounds(t *testing.T) {
	tests := []struct {
		name          string
		size          int
		accepted      int
		wantF, wantBy int
	}{
		{"frames", 1, inboxFrames, inboxFrames, inboxFrames},
		{"bytes", 4 << 20, 4, 4, 16 << 20},
		{"one frame of any size", 64 << 20, 1, 1, 64 << 20},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := newInbox()
			for i := range tt.accepted {
				if err := in.offer("s", message(tt.size)); err != nil {
					t.Fatalf("frame %d: %v", i, err)
				}
			}
			err := in.offer("s", message(tt.size))
			var over *OverflowError
			if !errors.As(err, &over) {
				t.Fatalf("want an OverflowError, got %v", err)
			}
			if diff := cmp.Diff(OverflowError{Slot: "s", Frames: tt.wantF, Bytes: tt.wantBy}, *over); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if err := in.offer("s", message(1)); err != nil {
				t.Errorf("after the overflow: %v", err)
			}
		})
	}
}

// put waits for room and is released by get and by abort.
func TestInboxPutWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newInbox()
		for range inboxFrames {
			in.put(message(1))
		}
		accepted := make(chan bool, 2)
		for range 2 {
			go func() { accepted <- in.put(message(1)) }()
		}
		synctest.Wait()
		if len(accepted) != 0 {
			t.Fatal("put exceeded the bound")
		}
		in.get()
		if !<-accepted {
			t.Error("put after get: want true")
		}
		synctest.Wait()
		if len(accepted) != 0 {
			t.Fatal("put exceeded the bound")
		}
		in.abort()
		if <-accepted {
			t.Error("put after abort: want false")
		}
	})
}

// Every open is followed by exactly one close, in whatever way it ends.
func TestInboxOpenAndClose(t *testing.T) {
	open, msg, fail, end := event{kind: eventOpen}, message(1), event{kind: eventError}, event{kind: eventClose}
	tests := []struct {
		name string
		put  []event
		end  func(*inbox)
		want []eventKind
	}{
		{"never opened", nil, (*inbox).abort, nil},
		{"abort drops messages", []event{open, msg, fail, msg}, (*inbox).abort, []eventKind{eventOpen, eventError, eventClose}},
		{"finish keeps messages", []event{open, msg}, func(in *inbox) { in.finish(errors.New("x")) },
			[]eventKind{eventOpen, eventMessage, eventError, eventClose}},
		{"abort after finish", []event{open, msg}, func(in *inbox) { in.finish(nil); in.abort() }, []eventKind{eventOpen, eventClose}},
		{"already closed", []event{open, end, end}, (*inbox).abort, []eventKind{eventOpen, eventClose}},
		{"opened again", []event{open, open, end, open}, (*inbox).abort,
			[]eventKind{eventOpen, eventClose, eventOpen, eventClose}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := newInbox()
			for _, e := range tt.put {
				in.put(e)
			}
			tt.end(in)
			if diff := cmp.Diff(tt.want, kinds(in)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
