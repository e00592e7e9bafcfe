package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
	"time"

	"mcpbroker/config"
)

// probeTimeout bounds the question who holds an address.
const probeTimeout = 3 * time.Second

// checkAddress tells whether the address can be bound, or who holds it.
func (p *program) checkAddress(ctx context.Context, found *findings, cfg *config.Config) {
	const check = "address"
	at := net.JoinHostPort(cfg.Host, strconv.Itoa(cfg.Port))
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", at)
	switch {
	case err == nil:
		_ = listener.Close()
		found.ok(check, at+" is free")
	case errors.Is(err, syscall.EADDRINUSE):
		p.checkHolder(ctx, found, cfg, at)
	case errors.Is(err, syscall.EACCES):
		found.fail(check, at+": permission denied", "use a port from 1024 (port, MCP_BROKER_PORT), or put a proxy in front")
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		found.fail(check, at+": this machine does not have that address", "use 127.0.0.1 for this machine only or 0.0.0.0 for all interfaces (host, MCP_BROKER_HOST)")
	default:
		found.fail(check, fmt.Sprintf("%s cannot be bound: %v", at, err), "set another host (MCP_BROKER_HOST) or port (MCP_BROKER_PORT)")
	}
	if w := exposure(cfg); w != "" {
		found.warn(check, "bound wider than this machine, and there is no authentication: whoever reaches the port may call and publish",
			`set host = "127.0.0.1", or let only trusted machines reach the port`)
	}
}

// checkHolder names who holds the address.
func (p *program) checkHolder(ctx context.Context, found *findings, cfg *config.Config, at string) {
	const check = "address"
	process := portHolder(cfg.Port)
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	c, err := p.connect(ctx, configured(cfg), brokerSlot)
	var refused *refusedError
	if errors.As(err, &refused) {
		found.ok(check, fmt.Sprintf("%s is held by a broker%s: it runs already", at, process))
		return
	}
	if err != nil {
		found.fail(check, fmt.Sprintf("%s is held by another program%s", at, process), "end that program, or pick another port (port, MCP_BROKER_PORT)")
		return
	}
	defer c.close()
	var info brokerInfo
	if _, err := c.inquire(ctx, "broker_info", nil, &info); err != nil {
		found.ok(check, fmt.Sprintf("%s is held by a broker%s: it runs already", at, process))
		return
	}
	found.ok(check, fmt.Sprintf("%s is held by %s %s%s, up %s: it runs already", at, info.Name, info.Version, process, info.uptime()))
}
