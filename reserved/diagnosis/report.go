package diagnosis

import (
	"bytes"
	"encoding/json"
	"time"

	"mcpbroker/actors/msg"
)

// Severity ranks a problem.
type Severity string

// Severities, gravest first.
const (
	Error   Severity = "error"   // something does not work
	Warning Severity = "warning" // something will not work, or is exposed
	Info    Severity = "info"    // something to know
)

func (s Severity) rank() int {
	switch s {
	case Error:
		return 0
	case Warning:
		return 1
	}
	return 2
}

// Report is the answer of broker_diagnose (spec 03 2.5).
type Report struct {
	Broker        BrokerReport     `json:"broker"`
	Slots         []SlotReport     `json:"slots"`
	Summary       Summary          `json:"summary"`
	Aggregate     *AggregateReport `json:"aggregate,omitempty"`
	Problems      []Problem        `json:"problems"`
	ChecksSkipped []Skipped        `json:"checksSkipped"`
	Notes         []string         `json:"notes"`
	SeeAlso       []string         `json:"seeAlso"`
}

// JSON returns the report as one compact JSON object.
func (r Report) JSON() []byte { return compact(r) }

// BrokerReport describes the broker.
type BrokerReport struct {
	Name          string    `json:"name"`
	Version       string    `json:"version"`
	StartedAt     stamp     `json:"startedAt"`
	UptimeSeconds int64     `json:"uptimeSeconds"`
	Listening     *string   `json:"listening"` // base URL; nil when not started
	TLS           bool      `json:"tls"`
	Paths         Paths     `json:"paths"`
	Endpoints     Endpoints `json:"endpoints"`
}

// Endpoints are URL templates with a literal <slot>.
type Endpoints struct {
	Provider       string `json:"provider"`
	Providers      string `json:"providers"`
	Client         string `json:"client"`
	StreamableHTTP string `json:"streamableHttp"`
}

// SlotReport describes one slot.
type SlotReport struct {
	Name                      string           `json:"name"`
	Transport                 msg.ProviderKind `json:"transport"`
	Kind                      string           `json:"kind,omitempty"` // of the slot's upstream
	Connected                 bool             `json:"connected"`
	Connecting                bool             `json:"connecting,omitempty"` // its upstream is being started or greeted; calls wait
	Aggregate                 bool             `json:"aggregate"`
	ConnectedSince            stamp            `json:"connectedSince"`
	ConnectedForMs            *int64           `json:"connectedForMs"`
	ClientCount               int              `json:"clientCount"`
	SessionCount              int              `json:"sessionCount"`
	PendingCount              int              `json:"pendingCount"`
	ResourceSubscriptionCount int              `json:"resourceSubscriptionCount"`
	Reserved                  bool             `json:"reserved"`
	Aggregated                *bool            `json:"aggregated,omitempty"`
}

// Summary counts over all slots.
type Summary struct {
	Slots                  int `json:"slots"`
	Connected              int `json:"connected"`
	ProviderSlots          int `json:"providerSlots"` // that have, had or are to get a provider; without the reserved ones
	ConnectedProviderSlots int `json:"connectedProviderSlots"`
	NeverServed            int `json:"neverServed"`     // names that clients have used and no provider
	PendingRequests        int `json:"pendingRequests"` // without those to _broker
	Clients                int `json:"clients"`
	Sessions               int `json:"sessions"`

	Problems Tally `json:"problems"` // those left out among them
}

// Tally counts problems by severity.
type Tally struct {
	Error   int `json:"error"`
	Warning int `json:"warning"`
	Info    int `json:"info"`
}

func (t *Tally) add(s Severity) {
	switch s {
	case Error:
		t.Error++
	case Warning:
		t.Warning++
	default:
		t.Info++
	}
}

// AggregateReport names the members of _all in join order.
type AggregateReport struct {
	Enabled   bool     `json:"enabled"`
	Providers []string `json:"providers"`
}

// Problem is one thing that is wrong.
type Problem struct {
	ID       string   `json:"id"`
	Severity Severity `json:"severity"`
	Slot     string   `json:"slot,omitempty"`
	Symptom  string   `json:"symptom"`
	Evidence Evidence `json:"evidence"`
	Fix      string   `json:"fix"`
}

// Skipped is a check that had no facts to work on.
type Skipped struct {
	ID     string `json:"id"`
	Reason string `json:"reason"`
}

// Evidence is a JSON object whose members keep their order.
type Evidence []Field

// Field is one member of Evidence.
type Field struct {
	Name  string
	Value any
}

// MarshalJSON implements json.Marshaler.
func (e Evidence) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, f := range e {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, compact(f.Name)...)
		b = append(b, ':')
		b = append(b, compact(f.Value)...)
	}
	return append(b, '}'), nil
}

// stamp is a time as reports spell it: ISO 8601, UTC, milliseconds; null when
// zero.
type stamp struct{ time.Time }

func (s stamp) text() any {
	if s.IsZero() {
		return nil
	}
	return s.UTC().Format("2006-01-02T15:04:05.000Z")
}

// MarshalJSON implements json.Marshaler.
func (s stamp) MarshalJSON() ([]byte, error) { return compact(s.text()), nil }

// compact keeps <slot> readable. What reports hold can always be encoded.
func compact(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
