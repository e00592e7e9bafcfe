package introspection

import (
	"time"

	"mcpbroker/actors/msg"
)

// slotInfo is one slot as it is reported (spec 03 1.4). The first six members
// describe the provider, the counts its callers.
type slotInfo struct {
	Name              string  `json:"name"`
	Transport         string  `json:"transport"`
	Connected         bool    `json:"connected"`
	Aggregate         bool    `json:"aggregate"`
	ConnectedSince    *string `json:"connectedSince"`
	ConnectedForMs    *int64  `json:"connectedForMs"`
	ClientCount       int     `json:"clientCount"`
	SessionCount      int     `json:"sessionCount"`
	PendingCount      int     `json:"pendingCount"`
	SubscriptionCount int     `json:"resourceSubscriptionCount"`
}

func describe(now time.Time, i *msg.SlotInfo) slotInfo {
	info := slotInfo{
		Name: i.Name, Transport: string(i.Transport), Connected: i.Connected, Aggregate: i.Aggregate,
		ClientCount: i.ClientCount, SessionCount: i.SessionCount, PendingCount: i.PendingCount, SubscriptionCount: i.SubscriptionCount,
	}
	if i.Connected {
		since, age := iso(i.ConnectedSince), max(0, now.Sub(i.ConnectedSince).Milliseconds())
		info.ConnectedSince, info.ConnectedForMs = &since, &age
	}
	return info
}

// iso is a time as ISO 8601 in UTC with milliseconds.
func iso(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

type inventoryInfo struct {
	Count     int        `json:"count"`
	Providers []slotInfo `json:"providers"`
}

func inventory(now time.Time, infos []msg.SlotInfo) inventoryInfo {
	list := inventoryInfo{len(infos), make([]slotInfo, len(infos))}
	for i := range infos {
		list.Providers[i] = describe(now, &infos[i])
	}
	return list
}

type brokerInfo struct {
	Name          string  `json:"name"`
	Version       string  `json:"version"`
	StartedAt     *string `json:"startedAt"`
	UptimeSeconds int64   `json:"uptimeSeconds"`
	Host          string  `json:"host"`
	Port          int     `json:"port"`
	TLS           bool    `json:"tls"`
	Paths         Paths   `json:"paths"`
}

// info is the object of broker_info and broker://info.
func (s *State) info(now time.Time) []byte {
	id := &s.cfg.identity
	info := brokerInfo{Name: id.Name, Version: id.Version, Host: id.Host, Port: id.Port, TLS: id.TLS, Paths: id.Paths}
	if !id.StartedAt.IsZero() {
		since := iso(id.StartedAt)
		info.StartedAt = &since
		info.UptimeSeconds = max(0, int64(now.Sub(id.StartedAt)/time.Second))
	}
	return encode(info)
}
