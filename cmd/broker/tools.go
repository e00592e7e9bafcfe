package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// maxToolPages bounds a list that a provider pages without end.
const maxToolPages = 1000

// toolInfo is one entry of tools/list.
type toolInfo struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

func (p *program) toolsCommand() *cli.Command {
	return p.remoteCommand(&cli.Command{
		Name:      "tools",
		Usage:     "list the tools of a slot",
		ArgsUsage: "SLOT",
		Description: "Asks tools/list of the slot, all its pages. An argument with a question mark may be left out.\n" +
			"Slot _all has the tools of every provider that joined it.",
		BashComplete: p.completeSlot(1),
	}, 1, 1, "name a slot (see 'broker get slots')", func(ctx context.Context, r *remote) error {
		return r.with(ctx, r.args[0], r.tools)
	})
}

func (r *remote) tools(ctx context.Context, c *client) error {
	list, err := c.listTools(ctx)
	if err != nil {
		return err
	}
	if r.json {
		return printJSON(r.stdout, encode(map[string]any{"tools": list}))
	}
	t := table{{"NAME", "ARGUMENTS", "DESCRIPTION"}}
	for _, raw := range list {
		tool, err := readTool(raw)
		if err != nil {
			return err
		}
		line, _, _ := strings.Cut(strings.TrimSpace(tool.Description), "\n")
		t.add(tool.Name, arguments(tool.InputSchema), line)
	}
	t.write(r.stdout)
	return nil
}

func readTool(raw json.RawMessage) (tool toolInfo, err error) {
	if err := json.Unmarshal(raw, &tool); err != nil {
		return tool, &refusedError{text: "The answer to tools/list cannot be read: " + err.Error()}
	}
	return tool, nil
}

// listTools returns the tools of all pages, as they were sent.
func (c *client) listTools(ctx context.Context) ([]json.RawMessage, error) {
	all := []json.RawMessage{}
	params := map[string]any{}
	for range maxToolPages {
		raw, err := c.request(ctx, "tools/list", params)
		if err != nil {
			return nil, err
		}
		var page struct {
			Tools      []json.RawMessage `json:"tools"`
			NextCursor string            `json:"nextCursor"`
		}
		if err := json.Unmarshal(raw, &page); err != nil {
			return nil, &refusedError{text: "The answer to tools/list cannot be read: " + err.Error()}
		}
		all = append(all, page.Tools...)
		switch page.NextCursor {
		case "":
			return all, nil
		case params["cursor"]:
			return nil, &refusedError{text: fmt.Sprintf("The provider pages its tools without end: it repeats the cursor %q", page.NextCursor)}
		}
		params["cursor"] = page.NextCursor
	}
	return nil, &refusedError{text: fmt.Sprintf("The provider pages its tools without end: more than %d pages", maxToolPages)}
}

// arguments describes what a tool takes, in the order of its schema.
func arguments(schema json.RawMessage) string {
	var object struct {
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	if json.Unmarshal(schema, &object) != nil {
		return "?"
	}
	var list []string
	for _, m := range members(object.Properties) {
		name := m.key
		if !slices.Contains(object.Required, name) {
			name += "?"
		}
		list = append(list, name+": "+typeOf(m.value))
	}
	if len(list) == 0 {
		return "-"
	}
	return strings.Join(list, ", ")
}

// typeOf names the type of a property; a choice between few words by the words.
func typeOf(schema json.RawMessage) string {
	var s struct {
		Type  json.RawMessage `json:"type"`
		Enum  []string        `json:"enum"`
		Items json.RawMessage `json:"items"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return "any"
	}
	if words := strings.Join(s.Enum, "|"); words != "" && len(words) <= 60 {
		return words
	}
	var several []string
	if json.Unmarshal(s.Type, &several) == nil && len(several) > 0 {
		return strings.Join(several, "|")
	}
	var one string
	switch _ = json.Unmarshal(s.Type, &one); {
	case one == "":
		return "any"
	case one == "array" && s.Items != nil:
		return typeOf(s.Items) + "[]"
	}
	return one
}
