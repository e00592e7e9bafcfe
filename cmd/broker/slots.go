package main

import (
	"context"
	"strconv"
	"time"
)

// slotInfo is a slot as _broker describes it (spec 03 1.4).
type slotInfo struct {
	Name              string  `json:"name"`
	Transport         string  `json:"transport"`
	Kind              string  `json:"kind"` // of the upstream that fills it
	Connected         bool    `json:"connected"`
	Connecting        bool    `json:"connecting"`
	Aggregate         bool    `json:"aggregate"`
	ConnectedSince    *string `json:"connectedSince"`
	ConnectedForMs    *int64  `json:"connectedForMs"`
	ClientCount       int     `json:"clientCount"`
	SessionCount      int     `json:"sessionCount"`
	PendingCount      int     `json:"pendingCount"`
	SubscriptionCount int     `json:"resourceSubscriptionCount"`
}

// callers are the clients _broker counts; stdio hosts are not among them.
func (s *slotInfo) callers() int { return s.ClientCount + s.SessionCount }

// transport is what feeds the slot. Of an upstream only the kind tells.
func (s *slotInfo) transport() string {
	if s.Connected && s.Kind != "" {
		return s.Kind
	}
	return s.Transport
}

func (s *slotInfo) connectedFor() string {
	switch {
	case s.Connecting:
		return "starting"
	case s.ConnectedForMs == nil:
		return "-"
	}
	return age(time.Duration(*s.ConnectedForMs) * time.Millisecond)
}

// inventory is the answer of providers_list.
type inventory struct {
	Count     int        `json:"count"`
	Providers []slotInfo `json:"providers"`
}

func (c *client) inventory(ctx context.Context) (list inventory, raw []byte, err error) {
	raw, err = c.inquire(ctx, "providers_list", nil, &list)
	return list, raw, err
}

func slotTable(list inventory) table {
	t := table{{"SLOT", "TRANSPORT", "FOR", "_ALL", "CALLERS", "PENDING", "SUBSCRIPTIONS"}}
	for _, s := range list.Providers {
		t.add(s.Name, s.transport(), s.connectedFor(), yesNo(s.Aggregate),
			strconv.Itoa(s.callers()), strconv.Itoa(s.PendingCount), strconv.Itoa(s.SubscriptionCount))
	}
	return t
}

func sessionTable(list inventory) table {
	t := table{{"SLOT", "HTTP", "WEBSOCKET", "PENDING", "SUBSCRIPTIONS"}}
	for _, s := range list.Providers {
		if s.callers() > 0 {
			t.add(s.Name, strconv.Itoa(s.SessionCount), strconv.Itoa(s.ClientCount),
				strconv.Itoa(s.PendingCount), strconv.Itoa(s.SubscriptionCount))
		}
	}
	return t
}
