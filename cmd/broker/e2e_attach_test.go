package main_test

import (
	"fmt"
	"strings"
	"testing"

	"mcpbroker/brokertest"
	"mcpbroker/provider"
)

// A provider that has opened holds its slot: a client that comes after it is
// never told that nobody is connected.
func TestOpenProviderHoldsItsSlot(t *testing.T) {
	b := startBroker(t)
	early := 0
	const rounds = 200
	for i := range rounds {
		slot := fmt.Sprintf("s%d", i)
		answers := make(chan []byte, 8)
		d := provider.NewDirect(b.direct(slot), provider.Events{Message: func(f []byte) { answers <- f }})
		c := brokertest.NewClient(t, b.mcp(slot))
		if err := d.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		reply := c.Start(brokertest.InitializeFrame)
		select {
		case <-answers: // the initialize has been relayed
		case a := <-reply:
			if strings.Contains(a.Body, notConnected) {
				early++
			}
		}
		_ = d.Close()
	}
	if early > 0 {
		t.Errorf("%d of %d clients were told that an open provider is not connected", early, rounds)
	}
}
