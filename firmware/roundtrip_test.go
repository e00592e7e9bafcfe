package firmware

import (
	"strings"
	"syscall"
	"testing"

	"mcpbroker/brokertest"
)

// awkward is a text whose every byte has to survive JSON twice.
const awkward = "say \"hi\" to C:\\temp\\\"x\"\n\tä €😀 \u2028 \x01 end\\"

// spec 04 11, steps 1 to 3, 6 and 7: a device comes up, serves, loses the broker
// without a goodbye, says so, and comes back by itself.
func TestRoundTrip(t *testing.T) {
	const config = "providerHeartbeatIntervalMs = 10000\n"
	b := startBroker(t, config)
	dedicated := startDevice(t, b.port, "--name", "pump-1", "--aggregate")
	shared := startDevice(t, b.port, "--name", "line 3/ä", "--multiplex", "--aggregate")
	dedicated.awaitConnect(1)
	shared.awaitConnect(1)

	serves := func(b *brokerProcess) {
		t.Helper()
		for slot, name := range map[string]string{
			"pump-1": "pump-1", "line%203%2F%C3%A4": "line 3/ä", "line%203%2F%C3%A4-b": "line 3/ä-b",
		} {
			s := open(t, b.mcp(slot), name)
			if names, _ := s.tools(); !strings.HasPrefix(names, "echo") {
				t.Errorf("tools of %s: %s", slot, names)
			}
			s.echo(name, awkward)
		}
	}
	serves(b)

	b.kill()
	for _, device := range []*process{dedicated, shared} {
		device.next(disconnected + `error=".+" (code=1006 )?.*next_retry_ms=\d+$`)
		device.next(retryFailed + `error=".+" attempts=[2-9].* next_retry_ms=\d+$`)
	}
	b = b.restart(config)
	dedicated.awaitConnect(2)
	shared.awaitConnect(2)
	serves(b)

	for device, want := range map[*process]string{dedicated: "calls=2", shared: "calls=4"} {
		device.signal(syscall.SIGTERM)
		device.next("^done connects=2 disconnects=1 messages_in=.* " + want + "$")
		if code := device.exit(); code != 0 {
			t.Errorf("exit code %d", code)
		}
	}
	// The goodbye frees the slot at once.
	if a := gone(t, b.mcp("pump-1")); a.Error == nil || a.Error.Code != -32000 {
		t.Errorf("call of a stopped device: %s %+v", a.Result, a.Error)
	}
}

// gone calls a device that has left.
func gone(t *testing.T, url string) reply {
	t.Helper()
	s := &session{t: t, client: brokertest.NewClient(t, url)}
	s.client.Initialize()
	return s.request("tools/list", `{}`)
}

// spec 04 11, steps 4, 5 and 7: who asked for it is in the merged catalog, and is
// there again after a restart of the broker.
func TestAggregate(t *testing.T) {
	b := startBroker(t, "")
	probe := aggregate(t, b.mcp("_all"))
	one := startDevice(t, b.port, "--name", "pump-1", "--aggregate")
	two := startDevice(t, b.port, "--name", "duo", "--multiplex", "--aggregate")
	alone := startDevice(t, b.port, "--name", "alone")
	check := func(all *session) {
		t.Helper()
		names := all.awaitTools("pump-1-echo", "duo-echo")
		for _, absent := range []string{"duo-b-echo", "alone-echo"} {
			if strings.Contains(names, absent) {
				t.Errorf("%s did not ask to be in _all: %s", absent, names)
			}
		}
		for _, device := range []string{"pump-1", "duo"} {
			if got := all.call(device+"-echo", `{"text":"x"}`); got != device+": x" {
				t.Errorf("echo of %s through _all: %q", device, got)
			}
		}
	}
	for _, device := range []*process{one, two, alone} {
		device.awaitConnect(1)
	}
	check(probe)
	b.kill()
	b = b.restart("")
	for _, device := range []*process{one, two, alone} {
		device.awaitConnect(2)
	}
	check(open(t, b.mcp("_all"), "_all"))
}
