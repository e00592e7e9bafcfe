// Package diagnosis judges the state of a broker: facts in, a report out
// (spec 03 2.4 and 2.5). It is pure. A problem is reported only if the facts
// prove it; a check whose facts are missing is named as skipped; each fix can be
// carried out by somebody who reads nothing else.
package diagnosis

import (
	"time"

	"mcpbroker/actors/msg"
)

// DefaultSlowAfter is the age from which an unanswered request counts as slow.
const DefaultSlowAfter = 5 * time.Second

// Facts is what is known about a broker at one moment.
type Facts struct {
	Now    time.Time
	Broker Broker
	Slots  []Slot // all of them, in the order they were created

	Instances []msg.Instance // the upstreams, by slot; nil: unknown
	Watched   []msg.Instance // slots with a health check whose provider comes by itself

	Aggregate *Aggregate // nil: unknown
	Bridge    *Bridge    // nil: unknown
	Pages     *Pages     // nil: unknown

	Configuration Configuration

	// HeartbeatMs, RequestTimeoutMs and SessionIdleTimeoutMs are the settings
	// providerHeartbeatIntervalMs, providerRequestTimeoutMs and
	// sessionIdleTimeoutMs; 0 is off.
	HeartbeatMs, RequestTimeoutMs, SessionIdleTimeoutMs int64
	Takeover                                            string // providerTakeover

	SlowReaders map[string]SlowReaders // by transport
	// SlowAfter is DefaultSlowAfter unless it is positive.
	SlowAfter time.Duration
}

// SlowReaders is what became of the clients of a transport that did not read what
// was sent to them, since the start.
type SlowReaders struct {
	Closed    uint64    // connections or streams
	Dropped   uint64    // messages
	Slot      string    // of the client for which the last message was dropped
	DroppedAt time.Time // when that was
}

// Broker is the broker itself.
type Broker struct {
	Name, Version string
	StartedAt     time.Time // zero: it has not started
	Host          string    // as configured
	Port          int       // it listens on
	// Authority is host:port as a client on this machine reaches it.
	Authority string
	TLS       bool
	Paths     Paths
	BoundWide bool // it listens beyond this machine

	ClientAuth, ProviderAuth bool // authentication is on
}

// Configuration is what became of the configuration file since the start.
type Configuration struct {
	File       string    // empty: there is none
	ReloadedAt time.Time // when a change of it was last looked at; zero: never
	Refused    string    // why that was not taken; empty when it was
	Restart    []string  // settings that were taken and wait for a restart
}

// Paths are the URL paths in effect, each with its leading slash.
type Paths struct {
	Provider  string `json:"provider"`
	Providers string `json:"providers"`
	Client    string `json:"client"`
	MCP       string `json:"mcp"`
	SSE       string `json:"sse"`
	Messages  string `json:"messages"`
}

// Slot is one line of the inventory.
type Slot struct {
	msg.SlotInfo
	Reserved bool // the broker serves it itself
}

// Aggregate is the state of _all.
type Aggregate struct {
	Enabled bool
	Members []Member // in join order, the missing ones among them
}

// Member is a slot that belongs into _all.
type Member struct {
	Slot    string
	Joined  bool // its catalog is part of _all
	Joining bool // its handshake is not over
	// Restarting: it joined, and its provider is being started again; its catalog
	// is that of before.
	Restarting bool
	Loop       bool // it is an _all that contains this one, so it is left out
	// Reason says why it is missing, or, of one that joined, what of its
	// catalog is, or that it is stale; empty when nothing is.
	Reason string
	Since  time.Time // when it joined, or what its handshake waits for was asked; zero is unknown
}

// Bridge is the slot on the broker's own standard input and output.
type Bridge struct{ Target string } // empty: there is no bridge

// Pages is what the broker serves to browsers beside MCP.
type Pages struct {
	Mounts            []string // URL prefixes
	OriginsConfigured bool     // allowedOrigins holds something
}
