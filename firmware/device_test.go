package firmware

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// Lines of the library's events.
const (
	connected    = `^event CONNECTED down_ms=\d+ connects=%d$`
	disconnected = `^event DISCONNECTED `
	retryFailed  = `^event RETRY_FAILED `
)

// quick keeps retries short; the last two are for the whole wait to be known.
var quick = []string{"--retry-initial=100", "--retry-max=400"}

// startDevice runs the host tool against a port of this machine.
func startDevice(t *testing.T, port string, args ...string) *process {
	t.Helper()
	return startTool(t, "mcplink-provider", port, args...)
}

// startPlant runs the simulation host.
func startPlant(t *testing.T, port string, args ...string) *process {
	t.Helper()
	return startTool(t, "mcplink-plant", port, args...)
}

func startTool(t *testing.T, name, port string, args ...string) *process {
	t.Helper()
	all := append([]string{"--host", "127.0.0.1", "--port", port}, quick...)
	return command(t, hostTool(t, name), append(all, args...)...).start()
}

// awaitServed waits until the broker has opened a slot of the device. A device that
// ended its connection by itself may be back before the broker knows, and is refused
// then: how often it came up tells nothing.
func (p *process) awaitServed(slot string) {
	p.t.Helper()
	p.next(`^in ` + slot + ` .*"method":"notifications/initialized"`)
}

// awaitConnect waits for the nth time a device comes up.
func (p *process) awaitConnect(n int) {
	p.t.Helper()
	p.next(fmt.Sprintf(connected, n))
}

// port is where an address of this machine listens.
func port(address string) string {
	return address[strings.LastIndexByte(address, ':')+1:]
}

// number is a submatch that is one.
func number(t *testing.T, digits string) int {
	t.Helper()
	n, err := strconv.Atoi(digits)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
