package upstreams_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"mcpbroker/actors/wire"
)

// Operators are told where a command was looked for; clients are told that it is not
// there. What a child said last loses the places it names.
func TestTextsForClients(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		s := h.server("a")
		whole := &wire.Confidential{Err: errors.New(`command "x" was not found in PATH (/opt/a/bin:/opt/b/bin)`), Public: "its command was not found"}
		s.refuse = whole
		h.apply(h.config("a", "1"))
		c := h.client("a")
		c.call()
		equal(t, "answer", c.answer(), `Provider "a" not connected: its command was not found. Attempt 1 failed, the next one is at 2000-01-01 00:00:30 (UTC)`)
		i, err := h.set.Instance(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "for operators", i.Error, whole.Error())

		s.with(func() { s.refuse = nil })
		time.Sleep(30 * time.Second)
		synctest.Wait()
		s.with(func() { s.mute = true })
		c.call()
		synctest.Wait()
		const last = "it exited with code 1; its stderr ends with: Error: Cannot find module '/srv/app/index.js'"
		s.die(last + ".")
		equal(t, "answer", c.answer(), `Provider "a" disconnected: it exited with code 1; its stderr ends with: Error: Cannot find module '.../index.js'`)
		if i, err = h.set.Instance(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		equal(t, "for operators", i.Error, last)
	})
}
