package scenarios

// actionKind is one action of the vocabulary. doc.go and docs/scenarios.md
// describe them in this order.
type actionKind struct {
	name     string // the step's key for it; its value is what the action is about
	blank    func() action
	observes bool
}

func actionKinds() []actionKind {
	return []actionKind{
		{"broker", func() action { return new(brokerAction) }, false},
		{"connect", func() action { return new(connectAction) }, false},
		{"reconnect", func() action { return new(reconnectAction) }, false},
		{"close", func() action { return new(closeAction) }, false},
		{"silence", func() action { return new(silenceAction) }, false},
		{"resume", func() action { return new(resumeAction) }, false},
		{"send", func() action { return new(sendAction) }, false},
		{"flood", func() action { return new(floodAction) }, false},
		{"receive", func() action { return new(receiveAction) }, true},
		{"answer", func() action { return new(answerAction) }, false},
		{"report", func() action { return new(reportAction) }, false},
		{"session", func() action { return new(sessionAction) }, false},
		{"call", func() action { return new(callAction) }, false},
		{"await", func() action { return new(awaitAction) }, true},
		{"file", func() action { return new(fileAction) }, false},
		{"run", func() action { return new(runAction) }, false},
		{"kill", func() action { return new(killAction) }, false},
		{"program", func() action { return new(programAction) }, false},
		{"expect_line", func() action { return new(expectLine) }, true},
		{"expect_message", func() action { return new(expectMessage) }, true},
		{"expect_tools", func() action { return new(expectTools) }, true},
		{"crash", func() action { return new(crashAction) }, false},
		{"wait", func() action { return new(waitAction) }, true},
		{"expect_open", func() action { return new(expectOpen) }, true},
		{"expect_close", func() action { return new(expectClose) }, true},
		{"expect_refusal", func() action { return new(expectRefusal) }, true},
		{"expect_state", func() action { return new(expectState) }, true},
		{"expect_ping", func() action { return new(expectPing) }, true},
		{"expect_log", func() action { return new(expectLog) }, true},
		{"expect_no_log", func() action { return new(expectNoLog) }, true},
		{"expect_slot", func() action { return new(expectSlot) }, true},
	}
}
