package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// tableView draws the table anew each time.
type tableView struct {
	w    io.Writer
	base string
	now  func() time.Time
	last table
}

const clearScreen = "\x1b[2J\x1b[H"

func (v *tableView) show(list inventory, _ json.RawMessage) error {
	v.last = slotTable(list)
	return v.draw("")
}

func (v *tableView) lost(err error) error { return v.draw(err.Error()) }

func (v *tableView) draw(trouble string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s  %s  (Ctrl-C ends)\n\n", clearScreen, v.base, v.now().Format(time.TimeOnly))
	v.last.write(&b)
	if trouble != "" {
		fmt.Fprintf(&b, "\n%s\n", oneLine(trouble))
	}
	_, err := io.WriteString(v.w, b.String())
	return err
}

// lineView writes what has changed.
type lineView struct {
	w    io.Writer
	now  func() time.Time
	last []slotInfo
}

func (v *lineView) show(list inventory, _ json.RawMessage) error {
	changes := slotChanges(v.last, list.Providers)
	v.last = list.Providers
	return v.write(changes...)
}

func (v *lineView) lost(err error) error { return v.write(err.Error()) }

func (v *lineView) write(lines ...string) error {
	at := v.now().Format(time.RFC3339)
	for _, line := range lines {
		if _, err := fmt.Fprintf(v.w, "%s  %s\n", at, oneLine(line)); err != nil {
			return err
		}
	}
	return nil
}

// jsonView writes the list when something other than a counter has changed.
type jsonView struct {
	w, log io.Writer
	last   []slotInfo
	begun  bool
}

func (v *jsonView) show(list inventory, raw json.RawMessage) error {
	if v.begun && len(slotChanges(v.last, list.Providers)) == 0 {
		return nil
	}
	v.begun, v.last = true, list.Providers
	return printJSON(v.w, raw)
}

func (v *jsonView) lost(err error) error {
	_, err = fmt.Fprintln(v.log, err)
	return err
}

// slotChanges tells what became of each slot between two lists, counters apart.
func slotChanges(before, after []slotInfo) []string {
	var lines []string
	find := func(list []slotInfo, name string) *slotInfo {
		i := slices.IndexFunc(list, func(s slotInfo) bool { return s.Name == name })
		if i < 0 {
			return nil
		}
		return &list[i]
	}
	for _, s := range before {
		if find(after, s.Name) == nil {
			lines = append(lines, s.Name+" ended")
		}
	}
	for _, s := range after {
		if change := slotChange(find(before, s.Name), &s); change != "" {
			lines = append(lines, s.Name+" "+change)
		}
	}
	return lines
}

// slotChange is empty where nothing has changed.
func slotChange(before, after *slotInfo) string {
	var parts []string
	same := before != nil && before.Connected == after.Connected && before.transport() == after.transport() &&
		(before.ConnectedSince == nil || after.ConnectedSince == nil || *before.ConnectedSince == *after.ConnectedSince)
	switch {
	case same:
	case after.Connected && before != nil && before.Connected:
		parts = append(parts, "has another provider, "+after.transport())
	case after.Connected:
		parts = append(parts, "connected, "+after.transport())
	case before == nil:
		parts = append(parts, "appeared, no provider")
	default:
		parts = append(parts, "disconnected")
	}
	switch wasMember := before != nil && before.Aggregate; {
	case after.Aggregate && !wasMember:
		parts = append(parts, "joined _all")
	case !after.Aggregate && wasMember:
		parts = append(parts, "left _all")
	}
	return strings.Join(parts, ", ")
}
