package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/urfave/cli/v2"

	"mcpbroker/actors/wire"
)

const progressToken = "call"

func (p *program) callCommand() *cli.Command {
	return p.remoteCommand(&cli.Command{
		Name:      "call",
		Usage:     "call a tool of a slot",
		ArgsUsage: "SLOT TOOL [key=text|key:=json...]",
		Description: "key=text passes a string, key:=json any other value: count:=3 list:='[1,2]' deep:=true.\n" +
			"Progress goes to standard error, the content to standard output; --output json is the whole result.\n" +
			"Exits 1 when the tool reports that it failed, 4 when it could not be called.",
		Flags:        []cli.Flag{&cli.StringFlag{Name: "args", Usage: "the arguments as one `JSON` object, - reads it from standard input; key=value goes on top"}},
		BashComplete: p.completeCall,
	}, 2, math.MaxInt, "name a slot and a tool (see 'broker tools SLOT')", func(ctx context.Context, r *remote) error {
		args, err := callArguments(r.cli.String("args"), r.args[2:], r.stdin)
		if err != nil {
			return refuse(r.cli, err.Error())
		}
		return r.with(ctx, r.args[0], func(ctx context.Context, c *client) error { return r.call(ctx, c, args) })
	})
}

// callArguments puts pairs on top of an object.
func callArguments(object string, pairs []string, stdin io.Reader) (map[string]json.RawMessage, error) {
	args := map[string]json.RawMessage{}
	if object == "-" {
		text, err := io.ReadAll(io.LimitReader(stdin, maxAnswerBytes))
		if err != nil {
			return nil, fmt.Errorf("--args: read standard input: %w", err)
		}
		object = string(text)
	}
	if object != "" {
		if err := json.Unmarshal([]byte(object), &args); err != nil || args == nil {
			return nil, errors.New("--args must be one JSON object")
		}
	}
	given := map[string]bool{}
	for _, pair := range pairs {
		key, text, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, fmt.Errorf("%q is no argument: write key=text or key:=json", pair)
		}
		value := json.RawMessage(encode(text))
		if name, typed := strings.CutSuffix(key, ":"); typed {
			key, value = name, json.RawMessage(text)
			if !json.Valid(value) {
				return nil, fmt.Errorf("%q: %s is not JSON; for a string write %s=%s", pair, text, name, text)
			}
		}
		switch {
		case key == "":
			return nil, fmt.Errorf("%q names no key", pair)
		case given[key]:
			return nil, fmt.Errorf("%q is given twice", key)
		}
		given[key] = true
		args[key] = value
	}
	return args, nil
}

func (r *remote) call(ctx context.Context, c *client, args map[string]json.RawMessage) error {
	c.note = func(method string, params json.RawMessage) { printProgress(r.stderr, method, params) }
	raw, err := c.request(ctx, "tools/call", map[string]any{
		"name": r.args[1], "arguments": args, "_meta": map[string]any{"progressToken": progressToken},
	})
	if err != nil {
		return advise(err, wire.CodeInvalidParams, fmt.Sprintf("'broker tools %s' lists the tools and their arguments.", r.args[0]))
	}
	var result toolResult
	if err := json.Unmarshal(raw, &result); err != nil {
		return &refusedError{text: "The answer is no tool result: " + err.Error()}
	}
	out := r.stdout
	switch {
	case r.json:
		err = printJSON(out, raw)
	default:
		if result.IsError {
			out = r.stderr
		}
		err = printContent(out, &result)
	}
	if err == nil && result.IsError {
		err = errReported
	}
	return err
}

// printProgress writes one line for each notifications/progress of the call.
func printProgress(w io.Writer, method string, params json.RawMessage) {
	var p struct {
		Token    any         `json:"progressToken"`
		Progress json.Number `json:"progress"`
		Total    json.Number `json:"total"`
		Message  string      `json:"message"`
	}
	if method != "notifications/progress" || json.Unmarshal(params, &p) != nil || p.Token != progressToken {
		return
	}
	line := "progress " + p.Progress.String()
	if p.Total != "" {
		line += "/" + p.Total.String()
	}
	if p.Message != "" {
		line += ": " + oneLine(p.Message)
	}
	fmt.Fprintln(w, line)
}
