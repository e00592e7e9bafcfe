package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// FuzzScan holds Scan against encoding/json: both accept the same inputs, apart
// from the bounds Scan adds, and find the same members.
func FuzzScan(f *testing.F) {
	for _, c := range byteCases() {
		f.Add([]byte(c.in))
	}
	for _, in := range invalidCases() {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		frame, err := Scan(in)
		if errors.Is(err, ErrDepth) || errors.Is(err, ErrDuplicate) {
			return
		}
		if want := json.Valid(in) && utf8.Valid(in); (err == nil) != want {
			t.Fatalf("Scan(%q) = %v; valid: %v", in, err, want)
		}
		if err == nil {
			checkMembers(t, &frame)
		}
	})
}

// checkMembers compares the spans of a frame with what encoding/json decodes.
func checkMembers(t *testing.T, f *Frame) {
	top := members(f.Bytes)
	params := members(top["params"])
	meta := members(params["_meta"])
	for _, c := range []struct {
		name string
		span Span
		want json.RawMessage
	}{
		{"id", f.ID, top["id"]}, {"params", f.Params, top["params"]},
		{"result", f.Result, top["result"]}, {"error", f.Error, top["error"]},
		{"payload", f.Payload, top["payload"]}, {"_meta", f.Meta, params["_meta"]},
		{"params.progressToken", f.Progress, params["progressToken"]},
		{"params.requestId", f.RequestID, params["requestId"]},
		{"traceparent", f.Trace, meta["traceparent"]},
	} {
		var got []byte
		if c.span.Present() {
			got = f.Raw(c.span)
		}
		if !bytes.Equal(got, c.want) || f.Shape != Object && got != nil {
			t.Errorf("%s of %q = %q, want %q", c.name, f.Bytes, got, c.want)
		}
	}
	var method string
	isString := json.Unmarshal(top["method"], &method) == nil && string(top["method"]) != "null"
	if (f.Method != nil) != isString || string(f.Method) != method {
		t.Errorf("method of %q = %q, want %q", f.Bytes, f.Method, method)
	}
	if want := string(top["aggregate"]) == "true"; f.LegacyJoin != want {
		t.Errorf("aggregate of %q = %v", f.Bytes, f.LegacyJoin)
	}
}

// members decodes one object; nil for anything else.
func members(raw []byte) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		return nil
	}
	return m
}

// FuzzSplice relays every request Scan accepts and compares it with its source,
// by bytes and by meaning.
func FuzzSplice(f *testing.F) {
	for _, c := range byteCases() {
		f.Add([]byte(c.in), uint64(caseID))
	}
	f.Fuzz(func(t *testing.T, in []byte, n uint64) {
		from, err := Scan(in)
		if err != nil {
			return
		}
		if from.IsNotification() {
			checkNote(t, &from)
		}
		if !from.IsRequest() {
			return
		}
		out := ToProvider(&from, n, fresh)
		to, err := Scan(out)
		if err != nil || !json.Valid(out) {
			t.Fatalf("ToProvider(%q) = %q: %v", in, out, err)
		}
		if want := `"brk-` + strconv.FormatUint(n, 10) + `"`; string(to.Raw(to.ID)) != want {
			t.Errorf("id %s, want %s", to.Raw(to.ID), want)
		}
		if from.NeedsTrace() && string(to.Raw(to.Trace)) != `"`+fresh+`"` {
			t.Errorf("no trace context in %q", out)
		}
		if got, want := rest(&to, inserted(&from, &to)), rest(&from, replaced(&from)...); got != want {
			t.Errorf("bytes outside the edits differ\n source %q\n result %q\n source without edits %q\n result without edits %q", from.Bytes, out, want, got)
		}
		if diff := cmp.Diff(expected(t, &from, n), decode(t, out)); diff != "" {
			t.Errorf("ToProvider(%q) = %q, by meaning (-want +got):\n%s", in, out, diff)
		}
	})
}

func checkNote(t *testing.T, f *Frame) {
	out := NoteToProvider(f)
	want := decode(t, f.Bytes)
	if f.Caller.Present() {
		params := want["params"].(map[string]any)
		meta := params["_meta"].(map[string]any)
		delete(meta, CallerKey)
		if f.CallerAlone {
			delete(params, "_meta")
		}
	}
	if diff := cmp.Diff(want, decode(t, out)); diff != "" {
		t.Errorf("NoteToProvider(%q) = %q, by meaning (-want +got):\n%s", f.Bytes, out, diff)
	}
}

// rest is a frame without its id, its token and one more span.
func rest(f *Frame, more ...Span) string {
	cut := bytes.Clone(f.Bytes)
	for _, s := range append(more, f.ID, f.Token) {
		for i := s.Start; i < s.End; i++ {
			cut[i] = 0 // stands in no valid JSON
		}
	}
	return strings.ReplaceAll(string(cut), "\x00", "")
}

// replaced are the spans of a source that do not reach the provider.
func replaced(f *Frame) (spans []Span) {
	if f.Trace.Present() && f.NeedsTrace() {
		spans = append(spans, f.Trace)
	}
	if !f.Caller.Present() {
		return spans
	}
	// The caller key goes with one comma and the space behind it, the one before
	// when it was the last.
	b, s := f.Bytes, f.Caller
	space := func(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
	end := s.End
	for space(b[end]) {
		end++
	}
	if b[end] == ',' {
		for end++; space(b[end]); end++ {
		}
		return append(spans, Span{s.Start, end})
	}
	start := s.Start - 1
	for space(b[start]) {
		start--
	}
	if b[start] == ',' {
		return append(spans, Span{start, s.End})
	}
	return append(spans, s)
}

// inserted is the span of a result that the source does not have.
func inserted(from, to *Frame) Span {
	if !from.NeedsTrace() {
		return Span{}
	}
	s := to.Trace
	if from.Trace.Present() {
		return s
	}
	s.Start -= int32(len(`"traceparent":`))
	if from.MetaShape == Absent {
		s.Start -= int32(len(`"_meta":{`))
		s.End++
	}
	if from.ParamsShape == Absent {
		s.Start -= int32(len(`,"params":{`))
		s.End++
	}
	if to.Bytes[s.End] == ',' {
		s.End++
	}
	return s
}

func decode(t *testing.T, raw []byte) map[string]any {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var m map[string]any
	if err := d.Decode(&m); err != nil {
		t.Fatalf("decode %q: %v", raw, err)
	}
	return m
}

// expected is what the provider should read, computed on decoded values.
func expected(t *testing.T, f *Frame, n uint64) map[string]any {
	broker := "brk-" + strconv.FormatUint(n, 10)
	want := decode(t, f.Bytes)
	want["id"] = broker
	if _, ok := want["params"]; !ok {
		want["params"] = map[string]any{}
	}
	params, ok := want["params"].(map[string]any)
	if !ok {
		return want
	}
	if _, ok := params["_meta"]; !ok {
		params["_meta"] = map[string]any{}
	}
	meta, ok := params["_meta"].(map[string]any)
	if !ok {
		return want
	}
	switch meta["progressToken"].(type) {
	case string:
		meta["progressToken"] = broker
	case json.Number:
		meta["progressToken"] = json.Number(strconv.FormatUint(n, 10))
	}
	if f.NeedsTrace() {
		meta["traceparent"] = fresh
	}
	delete(meta, CallerKey)
	return want
}

// FuzzEnvelope wraps a message and finds it again.
func FuzzEnvelope(f *testing.F) {
	for _, c := range byteCases() {
		f.Add("slot \"é\"", []byte(c.in))
	}
	f.Fuzz(func(t *testing.T, slot string, payload []byte) {
		if _, outer, ok, err := ScanEnvelope(payload); err == nil && !ok {
			plain, err := Scan(payload)
			if err != nil || !reflect.DeepEqual(plain, outer) {
				t.Errorf("ScanEnvelope(%q) sees %+v, Scan %+v, %v", payload, viewOf(&outer), viewOf(&plain), err)
			}
		}
		plain, err := Scan(payload)
		if err != nil || slot == "" || !utf8.ValidString(slot) {
			return
		}
		env, _, ok, err := ScanEnvelope(Wrap(slot, payload))
		if err != nil || !ok {
			t.Fatalf("ScanEnvelope(Wrap(%q, %q)): ok %v, err %v", slot, payload, ok, err)
		}
		if env.Slot != slot {
			t.Errorf("slot %q, want %q", env.Slot, slot)
		}
		if !reflect.DeepEqual(plain, env.Payload) {
			t.Errorf("payload %+v, want %+v", viewOf(&env.Payload), viewOf(&plain))
		}
	})
}

// FuzzDecodeSlot holds DecodeSlot against net/url and against EncodeSlot.
func FuzzDecodeSlot(f *testing.F) {
	for _, raw := range []string{"a%2Fb", "%zz", "%ff", "a+b", "%", "%2", "é%C3%A9", "%00"} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		want, err := url.PathUnescape(raw)
		if err != nil || !utf8.ValidString(want) {
			want = raw
		}
		if got := DecodeSlot(raw); got != want {
			t.Errorf("DecodeSlot(%q) = %q, want %q", raw, got, want)
		}
		encoded := EncodeSlot(raw)
		if strings.ContainsAny(encoded, "/?#+ \"") {
			t.Errorf("EncodeSlot(%q) = %q is not one segment", raw, encoded)
		}
		if utf8.ValidString(raw) && DecodeSlot(encoded) != raw {
			t.Errorf("DecodeSlot(%q) = %q, want %q", encoded, DecodeSlot(encoded), raw)
		}
	})
}

// FuzzCloseReason: at most 123 bytes of valid UTF-8, a prefix of what was asked.
func FuzzCloseReason(f *testing.F) {
	for _, unit := range []string{"x", "é", "读", "🎉", "\x80", "x\xff"} {
		f.Add(strings.Repeat(unit, 40))
		f.Add(strings.Repeat(unit, 130))
		f.Add("x" + strings.Repeat(unit, 62))
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := CloseReason(text)
		if len(got) > MaxReason || !utf8.ValidString(got) {
			t.Errorf("CloseReason(%q) = %q, %d bytes", text, got, len(got))
		}
		whole := strings.ToValidUTF8(text, "\ufffd")
		kept, cut := strings.CutSuffix(got, "...")
		switch {
		case got == whole:
		case !cut || !strings.HasPrefix(whole, kept) || len(whole) <= MaxReason:
			t.Errorf("CloseReason(%q) = %q", text, got)
		case len(kept) < MaxReason-len("...")-(utf8.UTFMax-1):
			t.Errorf("CloseReason(%q) keeps %d bytes, more would fit", text, len(kept))
		}
	})
}
