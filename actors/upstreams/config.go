package upstreams

import (
	"cmp"
	"time"

	"mcpbroker/actors/msg"
)

// Starter makes one connection. It returns at once; what comes of it is told to
// owner with this gen. cancel gives up a connection that has not opened yet.
type Starter func(owner msg.Ref, gen uint64) (cancel func())

// Config is one upstream. The zero durations mean the defaults below, but for Grace.
type Config struct {
	Slot      string
	Kind      string // stdio, streamable-http, sse, websocket or bundle
	Target    string // what operators see of it, secrets masked
	Aggregate bool   // join _all
	Isolated  bool   // one connection for each client session
	Watch     bool   // whoever holds the slot comes by itself: check it, and no more
	Start     Starter

	Schedule     Schedule
	MinUptime    time.Duration // up this long, an upstream has proved itself; default 60 s
	StartTimeout time.Duration // from the start to the answered initialize; default 60 s
	Grace        time.Duration // from TERM to KILL; 0 is KILL at once
	MaxRestarts  int           // failed attempts in a row before it is given up; 0 is never

	Health Health

	// Fingerprint tells whether a reload changed what an upstream is connected with. What
	// tuning returns is no part of it: that is changed while it serves.
	Fingerprint string
}

// remote reports a server elsewhere, which a connection is made to.
func (c *Config) remote() bool {
	return c.Kind == "streamable-http" || c.Kind == "sse" || c.Kind == "websocket"
}

// tuning is what of a configuration is changed without another connection.
type tuning struct {
	schedule                Schedule
	minUptime, startTimeout time.Duration
	maxRestarts             int
	health                  Health
}

func (c *Config) tuning() tuning {
	return tuning{c.Schedule, c.MinUptime, c.StartTimeout, c.MaxRestarts, c.Health}
}

// Schedule is when a failed attempt is repeated: Quick times after First each,
// then after Slow for ever (spec 06). The zero Schedule is 30 s, 5 times, 5 min.
type Schedule struct {
	First time.Duration // default 30 s
	Quick int           // 0 is none, unless all is zero
	Slow  time.Duration // default 5 min
}

// Health is how an upstream is watched. Without a Tool the check is tools/list,
// which proves that it lives and no more.
type Health struct {
	Tool      string
	Args      string        // JSON object; empty is {}
	Off       bool          // no checks
	Interval  time.Duration // default 30 s
	Timeout   time.Duration // of one check; default 10 s
	Threshold int           // failures in a row that make it unhealthy; default 3
}

func (c Config) withDefaults() Config {
	if c.Schedule == (Schedule{}) {
		c.Schedule.Quick = 5
	}
	c.Schedule.First = cmp.Or(c.Schedule.First, 30*time.Second)
	c.Schedule.Slow = cmp.Or(c.Schedule.Slow, 5*time.Minute)
	c.MinUptime = cmp.Or(c.MinUptime, time.Minute)
	c.StartTimeout = cmp.Or(c.StartTimeout, time.Minute)
	c.Health.Interval = cmp.Or(c.Health.Interval, 30*time.Second)
	c.Health.Timeout = cmp.Or(c.Health.Timeout, 10*time.Second)
	c.Health.Threshold = cmp.Or(c.Health.Threshold, 3)
	c.Health.Args = cmp.Or(c.Health.Args, "{}")
	return c
}

// wait is the time before attempt n+1, after n failed ones in a row.
func (s Schedule) wait(n int) time.Duration {
	if n <= s.Quick {
		return s.First
	}
	return s.Slow
}
