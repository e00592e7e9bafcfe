package introspection_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbroker"
	"mcpbroker/brokertest"
	"mcpbroker/config"
)

// childOf is an upstream that is this test binary; see main_test.go.
func childOf(t *testing.T, name, does string) config.StdioUpstream {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Parse("x.toml", []byte("[[stdioUpstreams]]\nname = '"+name+"'\ncommand = '"+program+"'\n"+
		"env = { INTROSPECTION_TEST_CHILD = '"+does+"' }\n"))
	if err != nil {
		t.Fatal(err)
	}
	return cfg.StdioUpstreams[0]
}

// keeping is a configuration with these upstreams.
func keeping(list ...config.StdioUpstream) *config.Config {
	c := config.Default()
	c.Port, c.StdioUpstreams = 0, list
	return c
}

func toolNames(t *testing.T, c *brokertest.Client) (names []string) {
	t.Helper()
	var list struct {
		Result struct{ Tools []struct{ Name string } }
	}
	a := c.Post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	if err := json.Unmarshal([]byte(a.Body), &list); err != nil {
		t.Fatalf("%v in %s", err, a.Body)
	}
	for _, tool := range list.Result.Tools {
		names = append(names, tool.Name)
	}
	return names
}

type restarted struct {
	Outcome, Message string
	Instance         struct {
		Verdict, Error, Check string
		PID                   int
		AttemptCount          int
		Unresolved            bool
		NextRetryAt           *string
		Stderr                []string
	}
}

func restart(t *testing.T, c *brokertest.Client, name string) (r restarted) {
	t.Helper()
	object := callTool(t, c, "instance_restart", `{"name":"`+name+`"}`)
	if err := json.Unmarshal([]byte(object), &r); err != nil {
		t.Fatalf("instance_restart: %v in %s", err, object)
	}
	return r
}

// restartedTail: the last lines of a process say this, and if there was one before it
// those of that one, too.
func restartedTail(lines []string, line string) bool {
	between := regexp.MustCompile(`^--- process \d+ ended: exit code 3 ---$`)
	return len(lines) == 1 && lines[0] == line || len(lines) == 3 && lines[0] == line && between.MatchString(lines[1]) && lines[2] == line
}

type status struct {
	Verdict string
	UpForMs int64
}

// until asks for an upstream until it is as wanted.
func until(t *testing.T, c *brokertest.Client, name string, wanted func(status) bool) {
	t.Helper()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	var s status
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); <-look.C {
		s = status{}
		object := callTool(t, c, "instance_status", `{"name":"`+name+`"}`)
		if err := json.Unmarshal([]byte(object), &s); err != nil {
			t.Fatal(err)
		}
		if wanted(s) {
			return
		}
	}
	t.Fatalf("%s does not become as wanted; it is %+v", name, s)
}

// Spec 06, spec 07 rows 8, 29 and 88: what an operator sees of a child that works,
// one that ends at once and one that lacks a variable, and what a restart of each
// comes to.
func TestWireInstances(t *testing.T) {
	lacking := childOf(t, "c-lacking", "serve")
	lacking.Env["TOKEN"] = "${NO_SUCH_VARIABLE_SET}"
	b := brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{
		mcpbroker.WithConfig(keeping(childOf(t, "a-good", "serve"), childOf(t, "b-bad", "exit"), lacking)),
	}})
	c := open(t, b)

	good := restart(t, c, "a-good")
	if good.Outcome != "up" || good.Instance.Verdict != "live" || good.Instance.Check != "tools/list" || good.Instance.PID == 0 {
		t.Errorf("the one that works: %+v", good)
	}
	until(t, c, "a-good", func(s status) bool { return s.UpForMs >= 1000 }) // before that it would be the same restart
	again := restart(t, c, "a-good")
	if again.Outcome != "up" || again.Instance.PID == good.Instance.PID {
		t.Errorf("the same process serves after a restart: %+v", again)
	}
	until(t, c, "b-bad", func(s status) bool { return s.Verdict == "error" }) // its first process has ended by itself
	bad := restart(t, c, "b-bad")
	if bad.Outcome != "failed" || bad.Instance.Verdict != "error" || bad.Instance.NextRetryAt == nil ||
		!strings.Contains(bad.Message, "code 3") || !restartedTail(bad.Instance.Stderr, "no such database") {
		t.Errorf("the one that ends at once: %+v", bad)
	}
	missing := restart(t, c, "c-lacking")
	if missing.Outcome != "failed" || !missing.Instance.Unresolved || missing.Instance.Error != "env.TOKEN: unresolved: the variable NO_SUCH_VARIABLE_SET is not set" {
		t.Errorf("the one that lacks a variable: %+v", missing)
	}

	var list struct {
		Count     int
		Instances []struct{ Name, Verdict string }
	}
	object := callTool(t, c, "instances_list", "{}")
	if err := json.Unmarshal([]byte(object), &list); err != nil || list.Count != 3 {
		t.Fatalf("instances_list: %v in %s", err, object)
	}
	for i, want := range []string{"a-good live", "b-bad error", "c-lacking error"} {
		if got := list.Instances[i].Name + " " + list.Instances[i].Verdict; got != want {
			t.Errorf("instance %d is %s, want %s", i, got, want)
		}
	}
	var report struct {
		Problems []struct{ ID, Slot string }
	}
	if err := json.Unmarshal([]byte(callTool(t, c, "broker_diagnose", "{}")), &report); err != nil {
		t.Fatal(err)
	}
	var problems []string
	for _, p := range report.Problems {
		if strings.HasPrefix(p.ID, "upstream-") || p.ID == "slot-never-connected" {
			problems = append(problems, p.ID+" "+p.Slot)
		}
	}
	want := []string{"upstream-secret-missing c-lacking", "upstream-failed b-bad", "upstream-live-only a-good"}
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// The tools about upstreams come with the first upstream of a reload and go with
// the last, in _broker and in _all; sessions are told.
func TestWireInstancesReload(t *testing.T) {
	b := brokertest.Start(t, brokertest.Options{})
	c := open(t, b)
	stream := c.Listen()
	five := []string{"broker_info", "providers_list", "provider_status", "broker_guide", "broker_diagnose"}
	if diff := cmp.Diff(five, toolNames(t, c)); diff != "" {
		t.Errorf("without upstreams (-want +got):\n%s", diff)
	}
	told := func() {
		t.Helper()
		for {
			switch block := stream.Next(); {
			case strings.Contains(block, `"method":"notifications/tools/list_changed"`):
				return
			case block == "":
				t.Fatal("the session is not told")
			}
		}
	}
	if _, err := b.Reload(t.Context(), keeping(childOf(t, "a", "serve"))); err != nil {
		t.Fatal(err)
	}
	told()
	if diff := cmp.Diff(append(five, "instances_list", "instance_status", "instance_restart"), toolNames(t, c)); diff != "" {
		t.Errorf("with one (-want +got):\n%s", diff)
	}
	if _, err := b.Reload(t.Context(), keeping()); err != nil {
		t.Fatal(err)
	}
	told()
	if diff := cmp.Diff(five, toolNames(t, c)); diff != "" {
		t.Errorf("without them again (-want +got):\n%s", diff)
	}
}
