package firmware

import (
	"encoding/json"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbroker/brokertest"
)

const (
	traceID  = "0af7651916cd43dd8448eb211c80319c"
	parentID = "b7ad6b7169203331"
)

// spec 04 2.9: a call that comes with a trace context is followed by a span that
// belongs to it, after the answer.
func TestTelemetry(t *testing.T) {
	t.Parallel()
	s := listen(t)
	startDevice(t, s.port(), "--name", "d", "--telemetry")
	p := s.serve("/provider/d")
	call := func(traceparent string) string {
		return `{"id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"},"_meta":{"traceparent":"` + traceparent + `"}}}`
	}
	const answer = `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"d: x"}]}}`
	spans := map[string]bool{}
	for range 2 {
		before := time.Now()
		p.write(frame(fin|opText, call("00-"+traceID+"-"+parentID+"-01")))
		brokertest.Equal(t, "answer", p.text(), answer)
		id := expectSpan(t, p.text(), before)
		if spans[id] {
			t.Errorf("span %s is there twice", id)
		}
		spans[id] = true
	}
	for _, unusable := range []string{"", "00-" + traceID + "-" + parentID, "00-00000000000000000000000000000000-" + parentID + "-01"} {
		p.write(frame(fin|opText, call(unusable)))
		brokertest.Equal(t, "answer", p.text(), answer)
	}
	p.serves(t) // no span came before
}

// expectSpan checks a notification and returns the id of its span.
func expectSpan(t *testing.T, message string, before time.Time) string {
	t.Helper()
	type attributes map[string]any
	type span struct {
		TraceID    string     `json:"traceId"`
		SpanID     string     `json:"spanId"`
		ParentID   string     `json:"parentSpanId"`
		Name       string     `json:"name"`
		Kind       int        `json:"kind"`
		Start      string     `json:"startTimeUnixNano"`
		End        string     `json:"endTimeUnixNano"`
		Attributes attributes `json:"attributes"`
	}
	type params struct {
		Version int    `json:"version"`
		Signal  string `json:"signal"`
		Span    span   `json:"span"`
	}
	type notification struct {
		JSONRPC string `json:"jsonrpc"`
		Method  string `json:"method"`
		Params  params `json:"params"`
	}
	var got notification
	if err := json.Unmarshal([]byte(message), &got); err != nil {
		t.Fatalf("%s: %v", message, err)
	}
	sp := got.Params.Span
	if !regexp.MustCompile(`^[0-9a-f]{16}$`).MatchString(sp.SpanID) || sp.SpanID == parentID {
		t.Errorf("span id %q", sp.SpanID)
	}
	start, err1 := strconv.ParseInt(sp.Start, 10, 64)
	end, err2 := strconv.ParseInt(sp.End, 10, 64)
	if err1 != nil || err2 != nil || start > end || start < before.UnixNano() || end > time.Now().UnixNano() {
		t.Errorf("span from %q to %q", sp.Start, sp.End)
	}
	want := notification{"2.0", "broker/telemetry", params{1, "traces", span{
		traceID, sp.SpanID, parentID, "echo", 2, sp.Start, sp.End, attributes{"device.name": "d"},
	}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("notification (-want +got):\n%s", diff)
	}
	return sp.SpanID
}

// The broker puts a trace context into every request; a span about it reaches no
// client.
func TestTelemetryThroughBroker(t *testing.T) {
	t.Parallel()
	b := startHere(t)
	device := startDevice(t, port(b.Host()), "--name", "pump-1", "--telemetry")
	device.awaitConnect(1)
	s := open(t, b.MCPURL("pump-1"), "pump-1")
	stream := s.client.Listen()
	if got := stream.Next(); got != ": open" {
		t.Fatalf("the stream begins with %q", got)
	}
	s.echo("pump-1", "traced")
	device.next(`^in pump-1 .*"traceparent":"00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]"`)
	device.next(`^out pump-1 .*"method":"broker/telemetry"`)
	if r := s.request("resources/subscribe", `{"uri":"device://status"}`); r.Error != nil {
		t.Fatalf("subscribe: %+v", r.Error)
	}
	s.call("set_speed", `{"speed_rpm":5}`)
	got := regexp.MustCompile(`"method":"([^"]+)"`).FindStringSubmatch(stream.Next())
	if len(got) != 2 || got[1] != "notifications/resources/updated" {
		t.Errorf("the client heard %q first", got)
	}
}
