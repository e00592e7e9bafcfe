package msg

import (
	"time"

	"mcpbroker/actors/wire"
)

// A message to an actor that has stopped comes back: the runtime calls
// Undelivered on it, on the sender's goroutine, and its sender is told what
// nobody else will tell it.

// Undelivered answers a call on a slot that is gone.
func (m *ClientCall) Undelivered() {
	m.Client.Send(&CallFailed{Call: m.Call, Err: wire.SlotGone()})
}

// Undelivered refuses a session whose slot has just ended.
func (m *JoinSlot) Undelivered() { m.Client.Send(&JoinRefused{Err: wire.SlotFailed(m.Slot)}) }

// Undelivered refuses a claim on a slot that has just ended.
func (m *ClaimSlot) Undelivered() {
	m.Claimant.Send(m.Refused(wire.SlotFailed(m.Slot), ""))
}

// Undelivered gives the frame's credit back.
func (m *ProviderFrame) Undelivered() { giveBack(m.Credit) }

// Undelivered gives the frame's credit back.
func (m *ProviderJunk) Undelivered() { giveBack(m.Credit) }

// Undelivered gives the refusal's credit back.
func (m *ProviderRefusal) Undelivered() { giveBack(m.Credit) }

// Undelivered gives the frame's credit back.
func (m *SocketFrame) Undelivered() { giveBack(m.Credit) }

// Undelivered frees a slot granted to a provider that has left meanwhile.
func (m *ClaimGranted) Undelivered() { m.Ref.Send(&ProviderGone{Gen: m.Gen}) }

// Undelivered tells a slot that asks a holder which has left: it is not open.
func (m *LivenessAsked) Undelivered() {
	if m.Asker != nil {
		m.Asker.Send(&LivenessReport{Gen: m.Gen})
	}
}

// Undelivered tells that a slot which is gone, or has failed, has ended nothing.
func (m *EndIdle) Undelivered() { m.Asker.Send(&IdleEnded{}) }

// Undelivered answers the client of a session that has ended.
func (m *ClientFrame) Undelivered() { giveBack(m.Credit); m.Sink.Closed() }

// Undelivered answers the client of a session that has ended.
func (m *ClientBatch) Undelivered() { giveBack(m.Credit); m.Sink.Closed() }

// Undelivered ends a stream on a session that has ended.
func (m *StreamOpened) Undelivered() { m.Stream.End() }

// Undelivered reports the session as closed: it is.
func (m *CloseSession) Undelivered() {
	if m.Done != nil {
		close(m.Done)
	}
}

// Undelivered closes the reply channel without a value.
func (m *DescribeSlot) Undelivered() { close(m.Reply) }

// Undelivered closes the reply channel without a value.
func (m *ListInventory) Undelivered() { close(m.Reply) }

// Undelivered closes the reply channel without a value.
func (m *DescribeInstance) Undelivered() { close(m.Reply) }

// strayGrace is how long a connection that nobody keeps has to end in order.
const strayGrace = 5 * time.Second

// Undelivered ends a connection that nobody keeps.
func (m *UpstreamOpened) Undelivered() {
	if m.Driver != nil {
		m.Driver.Stop(strayGrace)
	}
}

// Undelivered takes a session out of a slot it has not lived to enter.
func (m *SlotJoined) Undelivered() { m.Ref.Send(&LeaveSlot{Session: m.Session}) }

func giveBack(credit Credit) {
	if credit != nil {
		credit.Give()
	}
}
