package introspection

import (
	"time"

	"mcpbroker/actors/msg"
)

// slotInfo is one slot as it is reported (spec 03 1.4). The first seven members
// describe the provider, the counts its callers. transport is "stdio" for every
// upstream; kind says what it is.
type slotInfo struct {
	Name              string  `json:"name"`
	Transport         string  `json:"transport"`
	Kind              string  `json:"kind,omitempty"` // of the slot's upstream
	Connected         bool    `json:"connected"`
	Connecting        bool    `json:"connecting,omitempty"` // its upstream is being started or greeted; calls wait
	Aggregate         bool    `json:"aggregate"`
	ConnectedSince    *string `json:"connectedSince"`
	ConnectedForMs    *int64  `json:"connectedForMs"`
	ClientCount       int     `json:"clientCount"`
	SessionCount      int     `json:"sessionCount"`
	PendingCount      int     `json:"pendingCount"`
	SubscriptionCount int     `json:"resourceSubscriptionCount"`
}

// upstreams are those of a broker, by slot; nil is none, or not known.
type upstreams map[string]*msg.Instance

func upstreamsOf(all []msg.Instance) upstreams {
	found := upstreams{}
	for n := range all {
		if all[n].Kind != msg.KindProvider {
			found[all[n].Slot] = &all[n]
		}
	}
	return found
}

func (u upstreams) describe(now time.Time, i *msg.SlotInfo) slotInfo {
	info := describe(now, i)
	if behind := u[i.Name]; behind != nil {
		info.Kind = behind.Kind
		info.Connecting = info.Connecting || i.Connected && !behind.Isolated && behind.Since.IsZero()
	}
	return info
}

func describe(now time.Time, i *msg.SlotInfo) slotInfo {
	info := slotInfo{
		Name: i.Name, Transport: string(i.Transport), Connected: i.Connected, Connecting: i.Expected, Aggregate: i.Aggregate,
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

func inventory(now time.Time, infos []msg.SlotInfo, behind upstreams) inventoryInfo {
	list := inventoryInfo{len(infos), make([]slotInfo, len(infos))}
	for i := range infos {
		list.Providers[i] = behind.describe(now, &infos[i])
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

	Configuration *configurationInfo `json:"configuration,omitempty"`
}

// configurationInfo is left out of a broker without a file that was never reloaded.
type configurationInfo struct {
	File         *string     `json:"file"`
	LastReload   *reloadInfo `json:"lastReload"`
	NeedsRestart []string    `json:"needsRestart"` // settings that wait for one
}

type reloadInfo struct {
	At      string  `json:"at"`
	Applied bool    `json:"applied"`
	Error   *string `json:"error"` // why it was not
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
	info.Configuration = s.configured()
	return encode(info)
}

func (s *State) configured() *configurationInfo {
	if s.cfg.configuration == nil {
		return nil
	}
	c := s.cfg.configuration()
	if c.File == "" && c.ReloadedAt.IsZero() {
		return nil
	}
	info := &configurationInfo{NeedsRestart: append([]string{}, c.Restart...)}
	if c.File != "" {
		info.File = &c.File
	}
	if !c.ReloadedAt.IsZero() {
		info.LastReload = &reloadInfo{At: iso(c.ReloadedAt), Applied: c.Refused == ""}
		if c.Refused != "" {
			info.LastReload.Error = &c.Refused
		}
	}
	return info
}
