package mcpbroker_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"mcpbroker"
	"mcpbroker/actors/msg"
	"mcpbroker/actors/wire"
	"mcpbroker/brokertest"
)

const listTools = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`

// toolCall is a call of a tool.
func toolCall(id, name, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, name, arguments)
}

// expectReserved finds that no provider can take a slot (F-05).
func expectReserved(t *testing.T, b *brokertest.Broker, slot string) {
	t.Helper()
	code, reason := brokertest.Dial(t, b.ProviderURL(slot), nil).Closed()
	if want := `Provider "` + slot + `" is reserved by the broker`; code != 1008 || reason != want {
		t.Errorf("a provider of %s is closed with %d %q, want 1008 %q", slot, code, reason, want)
	}
}

// brokerMark is random: it tells one broker's _all from another's.
var brokerMark = regexp.MustCompile(`"broker":"[A-Z2-7]{26}"`)

// A broker without introspection is one whose _broker is empty, for its clients
// and for _all; the name stays reserved.
func TestWithoutIntrospection(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{mcpbroker.WithIntrospection(false)}})
	expectSlots(t, b, []string{"_all"}, []msg.ProviderKind{msg.Loopback})
	c := brokertest.NewClient(t, b.MCPURL("_broker"))
	brokertest.Is(t, "initialize", c.Initialize(), http.StatusOK, `{"jsonrpc":"2.0","id":0,"error":{"code":-32000,"message":"Provider \"_broker\" not connected"}}`)
	all := brokertest.NewClient(t, b.MCPURL("_all"))
	all.Initialize()
	list := all.Post(listTools)
	list.Body = brokerMark.ReplaceAllString(list.Body, `"broker":"ID"`)
	brokertest.Is(t, "tools/list on _all", list, http.StatusOK,
		`{"jsonrpc":"2.0","id":1,"result":{"tools":[],"_meta":{"io.cyanmycelium/members":{"joined":[],"missing":[]},"io.cyanmycelium/aggregate":{"broker":"ID","through":[]}}}}`)
	expectReserved(t, b, "_broker")
}

// A broker without the aggregate says so when it is asked.
func TestWithoutAggregate(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{mcpbroker.WithAggregate(false)}})
	expectSlots(t, b, []string{"_broker"}, []msg.ProviderKind{msg.Loopback})
	c := brokertest.NewClient(t, b.MCPURL("_all"))
	brokertest.Is(t, "initialize", c.Initialize(), http.StatusOK, `{"jsonrpc":"2.0","id":0,"error":{"code":-32000,"message":"Provider \"_all\" not connected"}}`)
	if got := problemsOf(t, b, ""); len(got) != 2 || got[0] != "warning no-providers" || got[1] != "info aggregate-disabled _all" {
		t.Errorf("the diagnosis finds %q", got)
	}
	expectReserved(t, b, "_all")
}

// problemsOf asks _broker for its diagnosis of a slot, or of everything: one line
// for each problem.
func problemsOf(t *testing.T, b *brokertest.Broker, slot string) []string {
	t.Helper()
	c := brokertest.NewClient(t, b.MCPURL("_broker"))
	c.Initialize()
	defer c.Close()
	defer c.Do(http.MethodDelete, "")
	a := c.Post(toolCall("1", "broker_diagnose", fmt.Sprintf(`{"slot":%q}`, slot)))
	var answer struct {
		Result struct {
			StructuredContent struct {
				Problems []struct{ Severity, ID, Slot string }
			}
			IsError bool
		}
	}
	if err := json.Unmarshal([]byte(a.Body), &answer); err != nil || answer.Result.IsError {
		t.Fatalf("broker_diagnose: %v in %s", err, a.Body)
	}
	var lines []string
	for _, p := range answer.Result.StructuredContent.Problems {
		lines = append(lines, strings.TrimSpace(p.Severity+" "+p.ID+" "+p.Slot))
	}
	return lines
}

// fuse makes the actors of one kind panic.
type fuse struct {
	kind string

	mu   sync.Mutex
	blow func(message any) bool // whether this message fails; nil for none
}

func (f *fuse) tap(actor string, message any) {
	if !strings.HasPrefix(actor, f.kind) {
		return
	}
	f.mu.Lock()
	failing := f.blow != nil && f.blow(message)
	f.mu.Unlock()
	if failing {
		panic("injected by the test")
	}
}

func (f *fuse) arm(blow func(message any) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.blow = blow
}

// callOf tells whether a message is this request of a client.
func callOf(message any, method string) bool {
	call, ok := message.(*msg.ClientCall)
	return ok && string(call.Frame.Method) == method
}

// Design, section 2: a fault in a reserved slot's own code costs the one caller
// whose message it was. Others, who wait meanwhile, go on, and so do the
// subscriptions and the members.
func TestReservedSlotsSurviveFaults(t *testing.T) {
	for slot, kind := range map[string]string{"_all": "aggregate", "_broker": "introspection"} {
		t.Run(slot, func(t *testing.T) {
			f := &fuse{kind: kind}
			b := brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{mcpbroker.WithTap(f.tap)}})
			p, member := joinAll(t, b, "pump")
			waiting, unlucky := brokertest.Dial(t, b.ClientURL(slot), nil), brokertest.Dial(t, b.ClientURL(slot), nil)
			var request string
			if slot == "_all" {
				waiting.Send(toolCall(`"w"`, "pump-run", `{}`))
				request = p.Receive()
			} else {
				waiting.Send(`{"jsonrpc":"2.0","id":"w","method":"resources/subscribe","params":{"uri":"broker://providers"}}`)
				brokertest.Equal(t, "the subscription", waiting.Receive(), `{"jsonrpc":"2.0","id":"w","result":{}}`)
			}

			f.arm(func(message any) bool { return callOf(message, "tools/list") })
			for range 20 { // more often than a slot may fail within a minute
				unlucky.Send(listTools)
				brokertest.Equal(t, "the call that fails", answerOf(unlucky), `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Slot \"`+slot+
					`\" failed while handling this request; the request was not completed and may be sent again"}}`)
			}
			f.arm(nil)

			unlucky.Send(listTools)
			if got := answerOf(unlucky); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":1,"result":{"tools":[{`) {
				t.Errorf("the call after: %s", got)
			}
			if slot == "_all" {
				brokertest.Respond(p, request, `{"content":[]}`)
				brokertest.Equal(t, "the call that waited", answerOf(waiting), `{"jsonrpc":"2.0","id":"w","result":{"content":[]}}`)
			} else {
				member.Close(1000, "")
				brokertest.Equal(t, "the update", waiting.Receive(), `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"broker://providers"}}`)
			}
			b.Log.Wait(t, "[broker] actor "+kind, "injected by the test")
		})
	}
}

// joinAll connects a provider with one tool, run, and waits until _all has it.
func joinAll(t *testing.T, b *brokertest.Broker, slot string) (brokertest.Provider, *brokertest.Socket) {
	t.Helper()
	p := b.Dedicated(t, slot)
	p.Send(`{"jsonrpc":"2.0","method":"notifications/register","params":{"aggregate":true}}`)
	brokertest.Respond(p, p.Receive(), brokertest.ServerResult)
	p.Receive() // notifications/initialized
	brokertest.Respond(p, p.Receive(), `{"tools":[{"name":"run","inputSchema":{"type":"object"}}]}`)
	b.Log.Wait(t, `provider "`+slot+`" joined "_all"`)
	brokertest.Respond(p, p.Receive(), `{"prompts":[]}`) // asked for although not declared
	return p, p
}

// answerOf is the next message that is no notification of a list.
func answerOf(s *brokertest.Socket) string {
	for {
		if message := s.Receive(); !strings.Contains(message, `/list_changed"`) {
			return message
		}
	}
}

// Whatever fails on the way, each request is answered once: requests that are
// served, refused, lost with the provider's answer, cancelled, and those in
// flight when the provider leaves.
func TestExactlyOneAnswer(t *testing.T) {
	faults := map[string]func(n int, message any) bool{
		"requests": func(n int, message any) bool { _, ok := message.(*msg.ClientCall); return ok && n%3 == 0 },
		"answers":  func(n int, message any) bool { return !isCall(message) && n%4 == 0 },
		"anything": func(n int, _ any) bool { return n%5 == 0 },
	}
	for slot, kind := range map[string]string{"_all": "aggregate", "_broker": "introspection"} {
		for name, fails := range faults {
			t.Run(slot+" "+name, func(t *testing.T) {
				f := &fuse{kind: kind}
				b := brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{mcpbroker.WithTap(f.tap)}})
				p, socket := joinAll(t, b, "pump")
				c := brokertest.Dial(t, b.ClientURL(slot), nil)
				n := 0
				f.arm(func(message any) bool { n++; return fails(n, message) })
				sent := map[string]bool{}
				for id := 100; id < 160; id++ {
					c.Send(mixed(slot, id))
					sent[fmt.Sprint(id)] = true
				}
				c.Send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":106}}`)
				if slot == "_all" {
					leaveAfter(p, socket, 4)
				}
				expectEach(t, c, sent)
				f.arm(nil)
				for range 3 { // what came twice would have come by now
					c.Send(`{"jsonrpc":"2.0","id":"last","method":"ping"}`)
					brokertest.Equal(t, "the last answer", answerOf(c), `{"jsonrpc":"2.0","id":"last","result":{}}`)
				}
			})
		}
	}
}

func isCall(message any) bool { _, ok := message.(*msg.ClientCall); return ok }

// mixed is one request of many sorts.
func mixed(slot string, id int) string {
	own := ""
	if slot == "_all" {
		own = "_broker-"
		if id%2 == 0 {
			return toolCall(fmt.Sprint(id), "pump-run", `{}`)
		}
	}
	switch id % 6 {
	case 0:
		return toolCall(fmt.Sprint(id), own+"providers_list", `{}`)
	case 1:
		return toolCall(fmt.Sprint(id), own+"broker_diagnose", `{}`)
	case 2:
		return toolCall(fmt.Sprint(id), own+"provider_status", `{"name":"pump"}`)
	case 3:
		return toolCall(fmt.Sprint(id), own+"gone", `{}`)
	case 4:
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/read","params":{"uri":"broker://info"}}`, id)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`, id)
}

// leaveAfter answers some requests and then leaves the others alone.
func leaveAfter(p brokertest.Provider, socket *brokertest.Socket, answers int) {
	for answered := 0; answered < answers; {
		if request := p.Receive(); wire.Member([]byte(request), "id") != nil {
			brokertest.Respond(p, request, `{"content":[]}`)
			answered++
		}
	}
	socket.Close(1000, "")
}

// expectEach takes messages until each id has been answered, none twice.
func expectEach(t *testing.T, c *brokertest.Socket, ids map[string]bool) {
	t.Helper()
	for len(ids) > 0 {
		message := answerOf(c)
		id := brokertest.ID(message)
		if !ids[id] {
			t.Fatalf("an answer nobody waits for: %s", message)
		}
		delete(ids, id)
	}
}
