package mcpbroker

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"time"
)

// A slot whose upstream is a slot of the same broker waits for itself, or doubles
// what it leads to; through _all its catalog would grow for ever. So an upstream is
// not dialled at an address this broker listens on, whatever the path.

// lookupPatience bounds the search for the addresses of a host. What cannot be found
// in that time is left to the connection.
const lookupPatience = 2 * time.Second

// notOurs refuses the URL of an upstream that is this broker itself.
func (run *running) notOurs(ctx context.Context, target string) error {
	u, err := url.Parse(target)
	if err != nil || u.Hostname() == "" || portOf(u) != run.port() {
		return nil
	}
	bound, ok := run.listener.Addr().(*net.TCPAddr)
	if !ok {
		return nil
	}
	here := bound.AddrPort().Addr().Unmap()
	ctx, cancel := context.WithTimeout(ctx, lookupPatience)
	defer cancel()
	for _, ip := range addressesOf(ctx, u.Hostname()) {
		if reaches(ip, here, ownAddresses) {
			return fmt.Errorf("its url is this broker's own address, %s: a slot cannot relay to its own broker; connect clients to that slot itself, or take the entry out of the configuration", u.Host)
		}
	}
	return nil
}

func portOf(u *url.URL) int {
	if port, err := strconv.Atoi(u.Port()); err == nil {
		return port
	}
	if u.Scheme == "https" || u.Scheme == "wss" {
		return 443
	}
	return 80
}

func addressesOf(ctx context.Context, host string) []netip.Addr {
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{ip}
	}
	all, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	return all
}

// reaches tells whether a connection to an address arrives where the broker is
// bound to.
func reaches(to, bound netip.Addr, own func() []netip.Addr) bool {
	to = to.Unmap().WithZone("")
	if to.IsUnspecified() { // dialling it is dialling this machine
		return bound.IsUnspecified() || bound.IsLoopback()
	}
	if !bound.IsUnspecified() {
		return to == bound.WithZone("")
	}
	if to.IsLoopback() {
		return true
	}
	for _, ip := range own() {
		if ip == to {
			return true
		}
	}
	return false
}

// ownAddresses are those of the interfaces of this machine.
func ownAddresses() []netip.Addr {
	interfaces, _ := net.InterfaceAddrs()
	var all []netip.Addr
	for _, a := range interfaces {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			all = append(all, prefix.Addr().Unmap())
		}
	}
	return all
}
