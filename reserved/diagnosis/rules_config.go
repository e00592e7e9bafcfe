package diagnosis

import (
	"cmp"
	"fmt"
	"strings"
)

// Rules about a configuration file that has changed since the start. Who changes an
// upstream and asks about its slot has to hear of the first, too.

// configRefused: what is in the file is not what runs.
func configRefused(d *diagnosis) []Problem {
	c := d.Configuration
	if c.Refused == "" {
		return nil
	}
	return []Problem{{
		ID: "config-refused", Severity: Warning,
		Symptom:  fmt.Sprintf("The configuration was changed and refused %s ago, so nothing of the change is in effect: %s", d.age(c.ReloadedAt), sentence(c.Refused)),
		Evidence: Evidence{{"file", c.File}, {"refusedAt", stamp{c.ReloadedAt}.text()}, {"error", c.Refused}},
		Fix:      refusedFix(cmp.Or(c.File, "FILE"), c.Refused),
	}}
}

// refusedFix: a file that has lost its content is not wrong, and only not taken unasked.
func refusedFix(file, refused string) string {
	if strings.HasSuffix(refused, "SIGHUP applies it") {
		return fmt.Sprintf("If that is meant, send the broker SIGHUP: 'kill -HUP PID'. If not, put the content of %s back; the broker reads it again once it has changed, and this entry is then gone. "+
			"Until then it goes on with the configuration it has; a restart would take the file as it is.", file)
	}
	return fmt.Sprintf("Correct what the message names. 'broker check %s' tells whether the file is right and changes nothing. The broker reads it again once it has changed, or at SIGHUP, "+
		"and this entry is then gone. Until then it goes on with the configuration it has.", argument(file))
}

// configNeedsRestart: part of what is in the file is not what runs.
func configNeedsRestart(d *diagnosis) []Problem {
	c := d.Configuration
	if !d.whole() || len(c.Restart) == 0 {
		return nil
	}
	return []Problem{{
		ID: "config-needs-restart", Severity: Warning,
		Symptom: fmt.Sprintf("The configuration file has other values than the running broker for %s, which %s taken over at the start only.",
			strings.Join(c.Restart, ", "), isAre(len(c.Restart))),
		Evidence: Evidence{{"file", c.File}, {"needsRestart", c.Restart}},
		Fix: "Restart the broker, with the command or the service manager that started it: providers and clients that reconnect by themselves come back. " +
			"Or take these changes back. Changes of upstreams in the same file are in effect.",
	}}
}

// sentence ends a text with a full stop.
func sentence(text string) string { return strings.TrimSuffix(text, ".") + "." }
