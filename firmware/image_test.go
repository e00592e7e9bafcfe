package firmware

import (
	"path/filepath"
	"strings"
	"testing"

	"mcpbroker/brokertest"
	"mcpbroker/firmware/firmwaretest"
)

// image is a program for a board, and how QEMU runs it.
type image struct {
	name     string // of the make target and of the file
	qemu     string
	packaged string // Debian package of qemu
	machine  []string
}

var (
	cortexM3 = image{"fw-arm", "qemu-system-arm", "qemu-system-arm", []string{
		"-M", "lm3s6965evb", "-serial", "none", "-nic", "user,model=stellaris",
	}}
	rv32 = image{"fw-rv32", "qemu-system-riscv32", "qemu-system-misc", []string{
		"-M", "virt", "-m", "16M", "-bios", "none", "-serial", "none",
		"-netdev", "user,id=n0", "-device", "virtio-net-device,netdev=n0", "-device", "virtio-rng-device",
	}}
)

// uart is the image without a network: its broker is at the other end of a serial
// line.
func uart(port string) image {
	return image{"fw-uart", "qemu-system-riscv32", "qemu-system-misc", []string{
		"-M", "virt", "-m", "16M", "-bios", "none", "-device", "virtio-rng-device",
		"-chardev", "socket,id=c0,host=127.0.0.1,port=" + port + ",server=off", "-serial", "chardev:c0",
	}}
}

// start builds the image and runs it with these arguments.
func (i image) start(t *testing.T, args ...string) *process {
	t.Helper()
	require(t, i.qemu, i.packaged)
	build(t, i.name)
	file := filepath.Join(firmwaretest.Dir(t), "build", i.name+".elf")
	config := "enable=on,target=native,arg=fw"
	for _, arg := range args {
		config += ",arg=" + strings.ReplaceAll(arg, ",", ",,")
	}
	all := append([]string{"-nographic", "-monitor", "none", "-semihosting-config", config, "-kernel", file}, i.machine...)
	return command(t, i.qemu, all...).start()
}

// startImage runs an image that finds its broker on a port of this machine.
func startImage(t *testing.T, i image, port string, args ...string) *process {
	t.Helper()
	return i.start(t, append([]string{"--port", port, "--retry-initial", "100", "--retry-max", "400"}, args...)...)
}

// spec 04 15, e2e firmware: a board connects, serves 200 calls, loses the broker to
// a SIGKILL, comes back, and survives a message that is larger than its memory.
func TestBoard(t *testing.T) {
	for _, i := range []image{cortexM3, rv32} {
		t.Run(i.name, func(t *testing.T) {
			t.Parallel()
			b := startBroker(t, "")
			board := startImage(t, i, b.port, "--name", "pump-1", "--aggregate")
			board.awaitConnect(1)
			s := open(t, b.mcp("pump-1"), "pump-1")
			for range 200 {
				s.echo("pump-1", awkward)
			}
			if got, want := s.call("set_speed", `{"speed_rpm":1200}`), `{"speed_rpm":1200,"running":true}`; got != want {
				t.Errorf("status %s, want %s", got, want)
			}

			b.kill()
			board.next(disconnected)
			board.next(retryFailed + `error=".+" .*attempts=2 `)
			b = b.restart("")
			board.awaitConnect(2)
			s = open(t, b.mcp("pump-1"), "pump-1")
			if got, want := s.call("read_status", `{}`), `{"speed_rpm":1200,"running":true}`; got != want {
				t.Errorf("status %s, want %s", got, want)
			}

			r := s.request("tools/call", `{"name":"echo","arguments":{"text":"`+strings.Repeat("x", 5000)+`"}}`)
			if r.Error == nil || r.Error.Code != -32000 {
				t.Errorf("call that does not fit: %.100s %+v", r.Result, r.Error)
			}
			board.next(disconnected)
			b.next(`provider "pump-1" disconnected after .*: it closed the connection with 1009$`)
			s.awaitDevice()
			s.echo("pump-1", strings.Repeat("y", 3000))
		})
	}
}

// a board whose slot is held hears why, and tries less and less often.
func TestBoardRefused(t *testing.T) {
	for _, i := range []image{cortexM3, rv32} {
		t.Run(i.name, func(t *testing.T) {
			t.Parallel()
			b := startHere(t)
			holder := b.Dedicated(t, "pump-1")
			board := startImage(t, i, port(b.Host()), "--name", "pump-1")
			for _, window := range []int{100, 200, 400} {
				m := board.next(disconnected + heldReason + `.* next_retry_ms=(\d+)$`)
				if wait := number(t, m[1]); wait < window/2 || wait > window {
					t.Errorf("waits %d ms, want %d to %d", wait, window/2, window)
				}
			}
			holder.Close(1000, "")
			board.next(`^event CONNECTED `)
			b.Connected(t, "pump-1")
			open(t, b.MCPURL("pump-1"), "pump-1").echo("pump-1", "at last")
		})
	}
}

// a board with two slots on one socket.
func TestBoardMultiplexed(t *testing.T) {
	for _, i := range []image{cortexM3, rv32} {
		t.Run(i.name, func(t *testing.T) {
			t.Parallel()
			b := startHere(t)
			board := startImage(t, i, port(b.Host()), "--name", "pump-1", "--multiplex")
			board.awaitConnect(1)
			for _, slot := range []string{"pump-1", "pump-1-b"} {
				open(t, b.MCPURL(slot), slot).echo(slot, awkward)
			}
		})
	}
}

// A simulated device and an emulated one are the same to a client: their tools are
// equal to the byte.
func TestBoardSchemas(t *testing.T) {
	b := startHere(t)
	tools := func(device *process) string {
		t.Helper()
		device.awaitConnect(1)
		_, list := open(t, b.MCPURL("pump-1"), "pump-1").tools()
		device.kill()
		b.Empty(t, "pump-1")
		return list
	}
	simulated := tools(startPlant(t, port(b.Host()), "--devices=1"))
	if !strings.Contains(simulated, `"name":"set_speed"`) {
		t.Errorf("tools of the simulated pump: %s", simulated)
	}
	for _, i := range []image{cortexM3, rv32} {
		t.Run(i.name, func(t *testing.T) {
			brokertest.Equal(t, "tools", tools(startImage(t, i, port(b.Host()), "--name", "pump-1")), simulated)
		})
	}
}

// spec 04 15, UART smoke: the port contract is not about sockets.
func TestBoardUART(t *testing.T) {
	t.Parallel()
	b := startHere(t)
	board := uart(port(b.Host())).start(t, "--name", "pump-1")
	board.awaitConnect(1)
	open(t, b.MCPURL("pump-1"), "pump-1").echo("pump-1", "over a serial line")
}
