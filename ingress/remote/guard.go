package remote

import (
	"fmt"
	"net/netip"
	"syscall"
)

// refusePrivate is a net.Dialer.Control that looks at the address being dialed, so
// that no name and no second lookup leads around it (07 row 70).
func refusePrivate(_, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("the address %s is not taken: %w", address, err)
	}
	if private(target.Addr()) {
		return fmt.Errorf("%s is not a public address, and the url did not come from the broker's own configuration", target.Addr())
	}
	return nil
}

// reserved are the blocks beside those package netip knows that are no public hosts
// (RFC 6890 and its registries), and those that carry an IPv4 address in an IPv6 one.
var reserved = func() []netip.Prefix {
	var all []netip.Prefix
	for _, block := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15",
		"198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
		"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "fec0::/10",
	} {
		all = append(all, netip.MustParsePrefix(block))
	}
	return all
}()

func private(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if !a.IsGlobalUnicast() || a.IsPrivate() {
		return true
	}
	for _, block := range reserved {
		if block.Contains(a) {
			return true
		}
	}
	return false
}
