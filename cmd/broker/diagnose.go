package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
)

// report is the answer of broker_diagnose (spec 03 2.5).
type report struct {
	Broker  brokerInfo `json:"broker"`
	Summary struct {
		Slots                  int `json:"slots"`
		Connected              int `json:"connected"`
		ProviderSlots          int `json:"providerSlots"`
		ConnectedProviderSlots int `json:"connectedProviderSlots"`
		NeverServed            int `json:"neverServed"`
		PendingRequests        int `json:"pendingRequests"`
		Clients                int `json:"clients"`
		Sessions               int `json:"sessions"`

		// Problems counts those that were left out, too; an older broker has none.
		Problems map[string]int `json:"problems"`
	} `json:"summary"`
	Problems      []problem `json:"problems"`
	ChecksSkipped []struct {
		ID     string `json:"id"`
		Reason string `json:"reason"`
	} `json:"checksSkipped"`
	Notes []string `json:"notes"`
}

type problem struct {
	ID       string          `json:"id"`
	Severity string          `json:"severity"`
	Slot     string          `json:"slot"`
	Symptom  string          `json:"symptom"`
	Evidence json.RawMessage `json:"evidence"`
	Fix      string          `json:"fix"`
}

// Severities of a problem.
const (
	severityError   = "error"
	severityWarning = "warning"
	severityInfo    = "info"
)

func (r *report) count(severity string) int {
	n := r.Summary.Problems[severity]
	if n > 0 {
		return n
	}
	for _, p := range r.Problems {
		if p.Severity == severity {
			n++
		}
	}
	return n
}

// counts sums the problems up, the worst first.
func (r *report) counts() string {
	var parts []string
	for _, severity := range []string{severityError, severityWarning} {
		if n := r.count(severity); n > 0 {
			parts = append(parts, plural(n, severity))
		}
	}
	if n := r.count(severityInfo); n > 0 {
		parts = append(parts, strconv.Itoa(n)+" info")
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

func (p *program) diagnoseCommand() *cli.Command {
	return p.remoteCommand(&cli.Command{
		Name:      "diagnose",
		Usage:     "name what is wrong with a running broker, or with one slot, and what to do",
		ArgsUsage: "[SLOT]",
		Description: "Asks broker_diagnose of _broker.\n" +
			"Exits 0 when there is nothing above info, 1 with warnings, 2 with errors.",
		BashComplete: p.completeSlot(1),
	}, 0, 1, "", func(ctx context.Context, r *remote) error {
		return r.with(ctx, brokerSlot, r.diagnose)
	})
}

func (r *remote) diagnose(ctx context.Context, c *client) error {
	var found report
	args := map[string]any{}
	if len(r.args) > 0 {
		args["slot"] = r.args[0]
	}
	raw, err := c.inquire(ctx, "broker_diagnose", args, &found)
	if err != nil {
		return err
	}
	if r.json {
		if err := printJSON(r.stdout, raw); err != nil {
			return err
		}
	} else {
		printDiagnosis(r.stdout, found)
	}
	return found.verdict()
}

// verdict is the exit code of what was found.
func (r *report) verdict() error {
	switch {
	case r.count(severityError) > 0:
		return cli.Exit("", exitErrors)
	case r.count(severityWarning) > 0:
		return cli.Exit("", exitFailed)
	}
	return nil
}

func printDiagnosis(w io.Writer, found report) {
	s := found.Summary
	fmt.Fprintf(w, "%s %s, up %s: %s, %d of %d providers connected, %s pending\n",
		oneLine(found.Broker.Name), oneLine(found.Broker.Version), found.Broker.uptime(),
		plural(s.Slots, "slot"), s.ConnectedProviderSlots, s.ProviderSlots, plural(s.PendingRequests, "request"))
	printProblems(w, found.Problems)
	for _, n := range found.Notes {
		fmt.Fprintf(w, "\nnote: %s\n", oneLine(n))
	}
	for _, c := range found.ChecksSkipped {
		fmt.Fprintf(w, "\nnot checked: %s: %s\n", oneLine(c.ID), oneLine(c.Reason))
	}
	fmt.Fprintf(w, "\nproblems: %s\n", found.counts())
}

func printProblems(w io.Writer, problems []problem) {
	for _, p := range problems {
		fmt.Fprintf(w, "\n%s %s", strings.ToUpper(oneLine(p.Severity)), oneLine(p.ID))
		if p.Slot != "" {
			fmt.Fprintf(w, " in slot %s", strconv.Quote(p.Slot))
		}
		fmt.Fprintf(w, "\n  %s\n", indented(p.Symptom))
		if facts := evidence(p.Evidence); facts != "" {
			fmt.Fprintf(w, "  evidence: %s\n", facts)
		}
		fmt.Fprintf(w, "  fix: %s\n", indented(p.Fix))
	}
}

// evidence writes the members of an object in their order.
func evidence(raw json.RawMessage) string {
	var facts []string
	for _, m := range members(raw) {
		facts = append(facts, oneLine(m.key)+"="+oneLine(string(compact(m.value))))
	}
	return strings.Join(facts, " ")
}

// indented keeps the lines of a text under each other.
func indented(s string) string { return strings.ReplaceAll(safeText(s), "\n", "\n  ") }
