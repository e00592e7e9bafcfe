package slot

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"mcpbroker/actors/msg"
)

// TestClaimBounds: 64 claims are decided at a time and 64 remembered; the next is
// refused and not remembered.
func TestClaimBounds(t *testing.T) {
	s := New("s", Config{Takeover: Liveness, NextID: func() uint64 { return 1 }})
	claim := func(i int) *msg.ClaimSlot {
		name := fmt.Sprintf("m%d", i)
		return &msg.ClaimSlot{Slot: "s", Claimant: &ref{name}, Conduit: &conduit{name}, Kind: msg.Multiplexed}
	}
	s.Step(epoch, claim(0))
	for i := 1; i <= maxClaims; i++ {
		if got := describe(s, s.Step(epoch, claim(i))); len(got) != 1 || got[0] != "m0 <- asked for liveness gen=1" {
			t.Fatalf("claim %d: %q", i, got)
		}
	}
	got := describe(s, s.Step(epoch, claim(65)))
	if len(got) != 1 || !strings.HasPrefix(got[0], `m65 <- refused -32000 Provider "s" is already connected. Too many claims on the slot are being decided.`) {
		t.Fatalf("claim 65: %q", got)
	}
	for range maxClaims {
		s.Step(epoch, &msg.LivenessReport{Gen: 1, Open: true})
	}
	if len(s.deciding) != 0 || len(s.waiting) != maxClaims {
		t.Errorf("%d claims decided, %d remembered; want 0, %d", len(s.deciding), len(s.waiting), maxClaims)
	}
}

// TestAbandonedBound: the last 1024 abandoned ids are remembered (F-24).
func TestAbandonedBound(t *testing.T) {
	s := New("s", Config{})
	for id := uint64(1); id <= rememberedIDs+10; id++ {
		s.abandon(id)
	}
	if s.abandoned.has(10) || !s.abandoned.has(11) || !s.abandoned.has(rememberedIDs+10) {
		t.Errorf("ids 11 to %d should be remembered", rememberedIDs+10)
	}
	if len(s.abandoned.set) != rememberedIDs || len(s.abandoned.ring) != rememberedIDs {
		t.Errorf("remembered %d in %d places, want %d", len(s.abandoned.set), len(s.abandoned.ring), rememberedIDs)
	}
}

// TestWaitsBound: calls that are taken back while their owner connects leave nothing
// behind, however many they are (spec 06).
func TestWaitsBound(t *testing.T) {
	s := New("s", Config{RequestTimeout: time.Minute, MaxPending: 4})
	owner, c := &ref{"o"}, &ref{"c"}
	s.Step(epoch, &msg.JoinSlot{Slot: "s", Session: 1, Client: c})
	s.Step(epoch, &msg.OwnSlot{Slot: "s", Owner: owner})
	s.Step(epoch, &msg.HolderExpected{Slot: "s", Owner: owner})
	call := func(n uint64) *msg.ClientCall {
		return &msg.ClientCall{Session: 1, Client: c, Call: n, Frame: mustScan(request("7", "m", ""))}
	}
	for n := uint64(1); n <= 300; n += 3 {
		s.Step(epoch, call(n))
		s.Step(epoch, &msg.CallerLeft{Session: 1, Call: n})
		s.Step(epoch, call(n+1))
		cancelled := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`
		got := describe(s, s.Step(epoch, &msg.ClientNote{Session: 1, Frame: mustScan(cancelled)}))
		if want := fmt.Sprintf("c <- failed #%d -32000 The request was cancelled before it reached the provider", n+1); len(got) != 1 || got[0] != want {
			t.Fatalf("a cancellation: %q", got)
		}
		s.Step(epoch, call(n+2))
		s.Step(epoch, &msg.LeaveSlot{Slot: "s", Session: 1})
		s.Step(epoch, &msg.JoinSlot{Slot: "s", Session: 1, Client: c})
	}
	if len(s.held) != 0 || len(s.waits) != 0 {
		t.Errorf("%d calls are held, %d wait; want none", len(s.held), len(s.waits))
	}
}

// TestCloseReasons: a refusal's close reason is at most 123 bytes of valid UTF-8;
// it is the name that is cut (spec 01 2.2, regression 12).
func TestCloseReasons(t *testing.T) {
	const lead = `Slot already held by a live provider; call provider_status on _broker. Slot: "`
	tests := []struct{ name, want string }{
		{"dup", lead + `dup"`},
		{strings.Repeat("n", 150), lead + strings.Repeat("n", 123-len(lead)-3) + "..."},
		{strings.Repeat("é", 80), lead + strings.Repeat("é", (123-len(lead)-3)/2) + "..."},
		{strings.Repeat("😀", 40), lead + strings.Repeat("😀", (123-len(lead)-3)/4) + "..."},
	}
	for _, test := range tests {
		s := New(test.name, Config{Takeover: Reject})
		s.Step(epoch, &msg.ClaimSlot{Slot: test.name, Claimant: &ref{"p1"}, Conduit: &conduit{"p1"}})
		s.Step(epoch, &msg.ClaimSlot{Slot: test.name, Claimant: &ref{"p2"}, Conduit: &conduit{"p2"}})
		effects := s.Step(epoch, &msg.LivenessReport{Gen: 1, Open: true})
		if len(effects) != 1 {
			t.Fatalf("%d effects, want the refusal", len(effects))
		}
		got := effects[0].Message.(*msg.ClaimRefused).CloseReason
		if got != test.want || len(got) > 123 || !utf8.ValidString(got) {
			t.Errorf("reason %q, want %q", got, test.want)
		}
	}
}
