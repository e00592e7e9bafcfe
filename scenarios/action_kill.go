package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
)

// killAction ends a program of the script, or the process of an upstream.
type killAction struct {
	Name string `step:"kill,required"`

	program bool
}

func (a *killAction) check(c *checker) {
	a.program = c.names[nameProgram][a.Name]
	switch {
	case a.program:
		delete(c.names[nameProgram], a.Name) // it may be started again
	case !c.upstreams[a.Name]:
		c.fail("kill", `unknown program or upstream %q: no earlier step introduces it with "program", or in the stdioUpstreams or mcpbBundles of a "config"`, a.Name)
	}
}

func (a *killAction) run(r *runner) error {
	if a.program {
		r.programs[a.Name].child.kill()
		return nil
	}
	ctx, cancel := r.within(0)
	defer cancel()
	pid, err := r.upstreamPID(ctx, a.Name)
	if err != nil {
		return fmt.Errorf("find the process of upstream %q: %w", a.Name, err)
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		return fmt.Errorf("kill the process of upstream %q: %w", a.Name, err)
	}
	if err := process.Kill(); err != nil {
		return fmt.Errorf("kill the process of upstream %q: %w", a.Name, err)
	}
	return nil
}

// upstreamPID asks the broker for the process behind a slot.
func (r *runner) upstreamPID(ctx context.Context, slot string) (int, error) {
	cl := newClient("runner", newHTTPLink(r.url()+"/_broker/mcp"))
	defer cl.link.cut()
	if o := cl.initialize(ctx); o.err != nil || o.isError {
		return 0, unmet("a session on _broker", o.String())
	}
	o := cl.call(ctx, "tools/call", map[string]any{"name": "instance_status", "arguments": map[string]any{"name": slot}}, false)
	var status struct{ PID int }
	if err := json.Unmarshal([]byte(o.text), &status); err != nil || o.err != nil || o.isError || status.PID == 0 {
		return 0, unmet("an instance_status with a pid", o.String())
	}
	return status.PID, cl.link.close(ctx)
}

// upstreamsOf notes the slots whose processes a configuration has the broker start.
func (c *checker) upstreamsOf(config map[string]any) {
	for _, key := range []string{"stdioUpstreams", "mcpbBundles"} {
		list, _ := config[key].([]any)
		for _, item := range list {
			entry, _ := item.(map[string]any)
			if name, ok := entry["name"].(string); ok {
				c.upstreams[name] = true
			}
		}
	}
}
