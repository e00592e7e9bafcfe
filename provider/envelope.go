package provider

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// envelopePrefix is everything of slot's envelopes up to the payload
// (spec 01 3.1). Payloads are spliced in, never re-encoded.
func envelopePrefix(slot string) []byte {
	return slices.Concat([]byte(`{"provider":`), encode(slot), []byte(`,"payload":`))
}

func wrap(prefix, payload []byte) []byte {
	return slices.Concat(prefix, payload, []byte(`}`))
}

// unwrap returns the slot and the payload of an envelope; ok is false for any
// other frame.
func unwrap(frame []byte) (slot string, payload []byte, ok bool) {
	var env struct {
		Provider *string         `json:"provider"`
		Payload  json.RawMessage `json:"payload"`
	}
	if json.Unmarshal(frame, &env) != nil || env.Provider == nil || *env.Provider == "" || env.Payload == nil {
		return "", nil, false
	}
	return *env.Provider, env.Payload, true
}

// refusalIn recognises the broker's refusal: an error answer whose id is null or
// absent (spec 01 3.5).
func refusalIn(slot string, payload []byte) (*TunnelError, bool) {
	var p struct {
		ID    *json.RawMessage `json:"id"` // nil for null too
		Error *struct {
			Code    *float64 `json:"code"`
			Message *string  `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(payload, &p) != nil || p.ID != nil || p.Error == nil ||
		p.Error.Code == nil || p.Error.Message == nil {
		return nil, false
	}
	return &TunnelError{Slot: slot, Code: int(*p.Error.Code), Message: *p.Error.Message}, true
}

// excerpt is the part of a frame that logs may quote.
func excerpt(frame []byte) string {
	const most = 200
	s := string(frame[:min(len(frame), most)])
	return strings.ToValidUTF8(s, "\uFFFD")
}

// marshal encodes v without escaping HTML characters.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// encode is marshal for values that are always encodable.
func encode(v any) []byte {
	b, err := marshal(v)
	if err != nil {
		panic("provider: encode: " + err.Error())
	}
	return b
}
