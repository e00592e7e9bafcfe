package firmware

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpbroker/brokertest"
)

// session is a client's session on a slot.
type session struct {
	t      *testing.T
	client *brokertest.Client
	next   int
}

// reply is a JSON-RPC answer.
type reply struct {
	ID     json.RawMessage `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *rpcError       `json:"error"`
}

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// open says initialize and initialized, and checks who answered. A device that is
// connected need not hold its slot yet, so a slot that nobody serves is
// asked again.
func open(t *testing.T, url, serverName string) *session {
	t.Helper()
	s := &session{t: t, client: brokertest.NewClient(t, url)}
	s.begin(serverName)
	return s
}

// begin starts a session in place of the one before.
func (s *session) begin(serverName string) {
	s.t.Helper()
	first := s.initialize()
	var r struct {
		Result struct {
			ServerInfo struct{ Name string } `json:"serverInfo"`
		} `json:"result"`
	}
	if err := json.Unmarshal([]byte(first.Body), &r); err != nil || r.Result.ServerInfo.Name != serverName {
		s.t.Fatalf("initialize at %s: %d %s: want server %q", s.client.URL, first.Status, first.Body, serverName)
	}
	if a := s.client.Post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`); a.Status != 202 {
		s.t.Fatalf("initialized at %s: %d %s", s.client.URL, a.Status, a.Body)
	}
}

func (s *session) initialize() brokertest.Answer {
	s.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for {
		s.client.Session = ""
		a := s.client.Initialize()
		if r := s.parse(a); r.Error == nil || r.Error.Code != -32000 {
			return a
		}
		select {
		case <-tick.C:
		case <-late:
			return a
		}
	}
}

// awaitDevice asks for the tools until a device answers. A call may still go to one
// that has left, and one that comes back is refused until the broker knows.
func (s *session) awaitDevice() {
	s.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for {
		r := s.request("tools/list", `{}`)
		if r.Error == nil {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			s.t.Fatalf("no device answers at %s: %+v", s.client.URL, r.Error)
		}
	}
}

// request sends a request and returns its answer.
func (s *session) request(method, params string) reply {
	s.t.Helper()
	s.next++
	a := s.client.Post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, s.next, method, params))
	return s.parse(a)
}

func (s *session) parse(a brokertest.Answer) reply {
	s.t.Helper()
	var r reply
	if err := json.Unmarshal([]byte(a.Body), &r); err != nil {
		s.t.Fatalf("answer of %s: %d %.300s: %v", s.client.URL, a.Status, a.Body, err)
	}
	return r
}

// call calls a tool and returns the text of its result.
func (s *session) call(tool, arguments string) string {
	s.t.Helper()
	return s.text(s.request("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, arguments)))
}

func (s *session) text(r reply) string {
	s.t.Helper()
	var result struct {
		Content []struct{ Text string } `json:"content"`
	}
	if r.Error != nil {
		s.t.Fatalf("call at %s: %d %s", s.client.URL, r.Error.Code, r.Error.Message)
	}
	if err := json.Unmarshal(r.Result, &result); err != nil || len(result.Content) != 1 {
		s.t.Fatalf("result of %s: %s", s.client.URL, r.Result)
	}
	return result.Content[0].Text
}

// echo calls the tool that every device has and checks its answer.
func (s *session) echo(device, text string) {
	s.t.Helper()
	arguments, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		s.t.Fatal(err)
	}
	if got, want := s.call("echo", string(arguments)), device+": "+text; got != want {
		s.t.Errorf("echo at %s:\n got %.200q\nwant %.200q", s.client.URL, got, want)
	}
}

// tools returns the names of the tools and the list as it arrived.
func (s *session) tools() (names string, list string) {
	s.t.Helper()
	r := s.request("tools/list", `{}`)
	var result struct {
		Tools []struct{ Name string } `json:"tools"`
	}
	if err := json.Unmarshal(r.Result, &result); err != nil {
		s.t.Fatalf("tools of %s: %s %v", s.client.URL, r.Result, r.Error)
	}
	var all []string
	for _, tool := range result.Tools {
		all = append(all, tool.Name)
	}
	return strings.Join(all, " "), string(r.Result)
}

// aggregate opens a session on the merged catalog, or skips the test where the
// broker has none.
func aggregate(t *testing.T, url string) *session {
	t.Helper()
	probe := brokertest.NewClient(t, url)
	if a := probe.Post(brokertest.InitializeFrame); !strings.Contains(a.Body, `"serverInfo"`) {
		t.Skipf("this broker does not serve _all: %d %s", a.Status, a.Body)
	}
	return open(t, url, "_all")
}

// awaitTools asks for the tools until all of these are there, and returns their
// names.
func (s *session) awaitTools(wanted ...string) string {
	s.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for {
		names, _ := s.tools()
		found := 0
		for _, name := range wanted {
			if slices.Contains(strings.Fields(names), name) {
				found++
			}
		}
		if found == len(wanted) {
			return names
		}
		select {
		case <-tick.C:
		case <-late:
			s.t.Fatalf("tools %q, want %q", names, wanted)
		}
	}
}
