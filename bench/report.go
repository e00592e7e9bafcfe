package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// report is everything that was measured. Durations are in nanoseconds.
type report struct {
	Measured time.Time     `json:"measured"`
	Machine  string        `json:"machine"`
	Runs     int           `json:"runs"`
	Window   time.Duration `json:"window"`
	Pin      string        `json:"pin,omitempty"` // CPUs of the servers / of the others
	Idle     int           `json:"idle"`
	Calls    []calls       `json:"calls"`
	Costs    []cost        `json:"costs"`
}

// calls is one row of calls per second.
type calls struct {
	Name   string  `json:"name"`
	Broker float64 `json:"broker"` // calls/s, median
	Bare   float64 `json:"bare"`   // calls/s, median
	Ratio  summary `json:"ratio"`  // of each pair, broker to bare
	CPU    float64 `json:"cpu"`    // of the broker, ms per call, median
	P50    float64 `json:"p50"`    // through the broker, ms, median of the runs
	P99    float64 `json:"p99"`
	Wrong  int     `json:"wrong"` // of both servers, all runs
	Errors int     `json:"errors"`
	Pairs  []pair  `json:"pairs"`
}

// cost is one row of what a call or an idle peer takes.
type cost struct {
	Name   string   `json:"name"`
	Unit   string   `json:"unit"`
	Each   summary  `json:"each"`
	Memory []growth `json:"memory,omitempty"`
}

// summary is one quantity over all runs, and its target.
type summary struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	Target float64 `json:"target"`
	AtMost bool    `json:"atMost"` // the target is an upper bound
	Met    bool    `json:"met"`
}

func summarize(values []float64, target float64, atMost bool) summary {
	s := summary{Median: median(values), Min: slices.Min(values), Max: slices.Max(values), Target: target, AtMost: atMost}
	s.Met = s.missedBy() <= 0
	return s
}

func (s summary) missedBy() float64 {
	if s.AtMost {
		return s.Median - s.Target
	}
	return s.Target - s.Median
}

// median of at least one value.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

func (r *report) addCalls(row callRow, pairs []pair) {
	each := func(f func(pair) float64) (values []float64) {
		for _, p := range pairs {
			values = append(values, f(p))
		}
		return values
	}
	cpu := each(func(p pair) float64 { return p.Broker.cpuPerCall() })
	c := calls{
		Name:   row.name,
		Broker: median(each(func(p pair) float64 { return p.Broker.rate() })),
		Bare:   median(each(func(p pair) float64 { return p.Bare.rate() })),
		Ratio:  summarize(each(pair.ratio), row.ratio, false),
		CPU:    median(cpu),
		P50:    median(each(func(p pair) float64 { return milliseconds(p.Broker.P50) })),
		P99:    median(each(func(p pair) float64 { return milliseconds(p.Broker.P99) })),
		Pairs:  pairs,
	}
	for _, p := range pairs {
		c.Wrong += p.Broker.Wrong + p.Bare.Wrong
		c.Errors += p.Broker.Errors + p.Bare.Errors
	}
	r.Calls = append(r.Calls, c)
	if row.cpu > 0 {
		r.Costs = append(r.Costs, cost{Name: "broker CPU per call, " + row.name, Unit: "ms", Each: summarize(cpu, row.cpu, true)})
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (r *report) addIdle(row idleRow, runs []growth) {
	var each []float64
	for _, g := range runs {
		each = append(each, float64(g.After-g.Before)/1024/float64(r.Idle))
	}
	r.Costs = append(r.Costs, cost{Name: "memory per " + row.name, Unit: "KiB", Each: summarize(each, row.target, true), Memory: runs})
}

// faults is what makes a measurement worthless: wrong answers and failed calls.
func (r *report) faults() error {
	var errs []error
	for _, c := range r.Calls {
		for i, p := range c.Pairs {
			for server, result := range map[string]*loadResult{"broker": p.Broker, "bare server": p.Bare} {
				if result.Wrong+result.Errors > 0 {
					errs = append(errs, fmt.Errorf("%s, run %d, %s: %d wrong answers, %d failed calls: %s",
						c.Name, i+1, server, result.Wrong, result.Errors, result.Problem))
				}
			}
		}
	}
	return errors.Join(errs...)
}

// markdown is the report for people.
func (r *report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s: %s, %s.\n", r.Measured.Format("2006-01-02 15:04 MST"), r.Machine, r.conditions())
	if len(r.Calls) > 0 {
		b.WriteString("\n| payload x sessions | broker calls/s | bare calls/s | ratio | min..max | broker CPU ms/call | p50 ms | p99 ms | wrong | target | result |\n" +
			"|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|\n")
	}
	for _, c := range r.Calls {
		fmt.Fprintf(&b, "| %s | %.0f | %.0f | %.2f | %.2f..%.2f | %.3f | %.2f | %.2f | %d | >= %.2f | %s |\n", c.Name, c.Broker, c.Bare,
			c.Ratio.Median, c.Ratio.Min, c.Ratio.Max, c.CPU, c.P50, c.P99, c.Wrong, c.Ratio.Target, c.Ratio.result(""))
	}
	if len(r.Costs) > 0 {
		b.WriteString("\n| cost | median | min..max | memory before -> after, KiB | target | result |\n|---|--:|--:|--:|--:|---|\n")
	}
	for _, c := range r.Costs {
		fmt.Fprintf(&b, "| %s | %.3g %s | %.3g..%.3g | %s | <= %.3g %s | %s |\n", c.Name, c.Each.Median, c.Unit,
			c.Each.Min, c.Each.Max, c.memory(), c.Each.Target, c.Unit, c.Each.result(" "+c.Unit))
	}
	return b.String()
}

func (r *report) conditions() string {
	text := fmt.Sprintf("runs %d, window %s, idle peers %d", r.Runs, r.Window, r.Idle)
	if r.Pin != "" {
		text += ", pinned to CPUs " + r.Pin
	}
	return text
}

func (s summary) result(unit string) string {
	if s.Met {
		return "met"
	}
	return fmt.Sprintf("missed by %.2g%s", s.missedBy(), unit)
}

// memory shows the run with the median growth.
func (c cost) memory() string {
	if len(c.Memory) == 0 {
		return ""
	}
	sorted := slices.Clone(c.Memory)
	slices.SortFunc(sorted, func(a, b growth) int { return int((a.After - a.Before) - (b.After - b.Before)) })
	g := sorted[len(sorted)/2]
	return fmt.Sprintf("%d -> %d", g.Before>>10, g.After>>10)
}
