package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// expectTools does what a host does: it lists the tools, and again when it is
// told that they changed.
type expectTools struct {
	ID       string `step:"expect_tools,required"`
	First    words  `step:"first"`
	Has      words  `step:"has"`
	Lacks    words  `step:"lacks"`
	Contains words  `step:"contains"`
	Within   span   `step:"within"`
}

func (a *expectTools) check(c *checker) {
	c.use(nameClient, "expect_tools", a.ID)
	if len(a.First)+len(a.Has)+len(a.Lacks)+len(a.Contains) == 0 {
		c.fail("expect_tools", `"expect_tools" needs "first", "has", "lacks" or "contains"`)
	}
}

// toolsPoll is how often a list is asked for again whose tools are right and
// whose other contents are not: of these nobody is told.
const toolsPoll = 20 * time.Millisecond

func (a *expectTools) run(r *runner) error {
	ctx, cancel := r.within(a.Within)
	defer cancel()
	cl := r.clients[a.ID]
	if err := cl.link.listen(ctx, r.life, cl); err != nil && ctx.Err() == nil {
		return err
	}
	for {
		o := cl.call(ctx, "tools/list", nil, false)
		names, ok := toolNames(o)
		switch {
		case !ok && ctx.Err() != nil:
			return missed(ctx, a.String())
		case !ok:
			return unmet(a.String(), o.String())
		case a.names(names) && containsAll(o.text, a.Contains):
			return nil
		}
		if a.wait(ctx, cl, a.names(names)) != nil {
			return fmt.Errorf("expected %s, got %s; %w", a, excerpt(o.text), context.Cause(ctx))
		}
	}
}

// wait returns once the list may be another one.
func (a *expectTools) wait(ctx context.Context, cl *client, poll bool) error {
	if poll {
		pause := time.NewTimer(toolsPoll)
		defer pause.Stop()
		select {
		case <-pause.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for {
		f, err := cl.messages.take(ctx)
		if err != nil || f.method == "notifications/tools/list_changed" {
			return err
		}
	}
}

// names tells whether these are the tools that are expected.
func (a *expectTools) names(got []string) bool {
	has := func(name string) bool { return slices.Contains(got, name) }
	return len(got) >= len(a.First) && slices.Equal(got[:len(a.First)], a.First) &&
		!slices.ContainsFunc(a.Has, func(name string) bool { return !has(name) }) && !slices.ContainsFunc(a.Lacks, has)
}

func (a *expectTools) String() string {
	var parts []string
	for _, p := range []struct {
		what  string
		words words
	}{{"first", a.First}, {"with", a.Has}, {"without", a.Lacks}, {"containing", a.Contains}} {
		if len(p.words) > 0 {
			parts = append(parts, fmt.Sprintf("%s %q", p.what, p.words))
		}
	}
	return a.ID + ": a list of tools " + strings.Join(parts, ", ")
}

// toolNames reads the result of tools/list.
func toolNames(o outcome) (names []string, ok bool) {
	if o.err != nil || o.isError {
		return nil, false
	}
	var result struct {
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
	}
	if err := json.Unmarshal([]byte(o.text), &result); err != nil {
		return nil, false
	}
	for _, tool := range result.Tools {
		names = append(names, tool.Name)
	}
	return names, true
}
