package main

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/urfave/cli/v2"
)

// completionTimeout bounds what a press of the tab key waits for a broker.
const completionTimeout = time.Second

// completable are the names that a shell may be told. Peers choose names, and bash
// expands the words of a completion: anything else could run a command.
var completable = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)

// completeSlot proposes the slots of the running broker for argument n, from 1.
func (p *program) completeSlot(n int) cli.BashCompleteFunc {
	return func(c *cli.Context) {
		if c.NArg() != n-1 {
			return
		}
		p.propose(c, brokerSlot, func(ctx context.Context, session *client) []string {
			list, _, _ := session.inventory(ctx)
			var names []string
			for _, s := range list.Providers {
				names = append(names, s.Name)
			}
			return names
		})
	}
}

// completeInstance proposes the upstreams of the running broker.
func (p *program) completeInstance(c *cli.Context) {
	if c.NArg() > 0 {
		return
	}
	p.propose(c, brokerSlot, func(ctx context.Context, session *client) []string {
		list, _, _ := session.instances(ctx)
		var names []string
		for _, i := range list.Instances {
			names = append(names, i.Name)
		}
		return names
	})
}

// completeCall proposes slots, then the tools of the slot.
func (p *program) completeCall(c *cli.Context) {
	if c.NArg() != 1 {
		p.completeSlot(1)(c)
		return
	}
	p.propose(c, c.Args().First(), func(ctx context.Context, session *client) []string {
		list, _ := session.listTools(ctx)
		var names []string
		for _, raw := range list {
			if tool, err := readTool(raw); err == nil {
				names = append(names, tool.Name)
			}
		}
		return names
	})
}

// propose prints the names a slot gives, none when anything is wrong.
func (p *program) propose(c *cli.Context, slot string, names func(context.Context, *client) []string) {
	at, err := p.address(c.String("url"))
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(c.Context, completionTimeout)
	defer cancel()
	session, err := p.connect(ctx, at, slot)
	if err != nil {
		return
	}
	defer session.close()
	for _, name := range names(ctx, session) {
		if completable.MatchString(name) {
			fmt.Fprintln(c.App.Writer, name)
		}
	}
}
