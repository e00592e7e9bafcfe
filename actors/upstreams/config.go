package upstreams

import (
	"cmp"
	"time"

	"mcpbroker/actors/msg"
)

// Starter makes one connection. It returns at once; what comes of it is told to
// owner with this gen. cancel gives up a connection that has not opened yet.
type Starter func(owner msg.Ref, gen uint64) (cancel func())

// Config is one upstream. The zero durations mean the defaults below.
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
	Grace        time.Duration // from TERM to KILL; default 5 s
	MaxRestarts  int           // failed attempts in a row before it is given up; 0 is never

	Health Health

	// Fingerprint tells whether a reload changed the upstream.
	Fingerprint string
}

// Schedule is when a failed attempt is repeated: Quick times after First each,
// then after Slow for ever (spec 06).
type Schedule struct {
	First time.Duration // default 30 s
	Quick int           // default 5
	Slow  time.Duration // default 5 min
}

// Health is how an upstream is watched. Without a Tool the check is tools/list,
// which proves that it lives and no more.
type Health struct {
	Tool      string
	Args      string        // JSON object; empty is {}
	Interval  time.Duration // default 30 s
	Timeout   time.Duration // of one check; default 10 s
	Threshold int           // failures in a row that make it unhealthy; default 3
}

func (c Config) withDefaults() Config {
	c.Schedule.First = cmp.Or(c.Schedule.First, 30*time.Second)
	c.Schedule.Quick = cmp.Or(c.Schedule.Quick, 5)
	c.Schedule.Slow = cmp.Or(c.Schedule.Slow, 5*time.Minute)
	c.MinUptime = cmp.Or(c.MinUptime, time.Minute)
	c.StartTimeout = cmp.Or(c.StartTimeout, time.Minute)
	c.Grace = cmp.Or(c.Grace, 5*time.Second)
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
