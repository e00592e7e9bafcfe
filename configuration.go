package mcpbroker

import (
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"mcpbroker/config"
	"mcpbroker/reserved/diagnosis"
	"mcpbroker/reserved/introspection"
)

// reloads remembers what became of the last change of the configuration, so that
// whoever asks a running broker hears of it, and not only who reads its log.
type reloads struct {
	mu      sync.Mutex
	at      time.Time // zero before the first
	refused string    // why it was; empty when it was applied
	restart []string  // settings of the last one applied that wait for a restart
}

// maxRefusal bounds what is kept of a refusal, in bytes.
const maxRefusal = 4 << 10

func (r *reloads) applied(restart []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at, r.refused, r.restart = time.Now(), "", restart
}

// ReloadRefused tells the broker that a changed configuration was not taken: the
// file was wrong, or its Reload failed. broker_info and broker_diagnose report it
// until the next Reload that is applied.
func (b *Broker) ReloadRefused(err error) {
	b.reloads.mu.Lock()
	defer b.reloads.mu.Unlock()
	text := strings.ReplaceAll(strings.TrimSpace(publicRefusal(err)), "\n", "; ")
	if len(text) > maxRefusal {
		text = strings.ToValidUTF8(text[:maxRefusal], "") + "..."
	}
	b.reloads.at, b.reloads.refused = time.Now(), text
}

// publicRefusal is the text of a refusal without the values of settings, which may be
// secrets: the log has them, but a client of _broker need not.
func publicRefusal(err error) string {
	wrong := new(config.Error)
	if !errors.As(err, &wrong) {
		return err.Error()
	}
	lines := make([]string, len(wrong.Problems))
	for i, p := range wrong.Problems {
		p.Message, _, _ = strings.Cut(p.Message, ", not ")
		p.Message = quotedValue.ReplaceAllString(p.Message, `$1 "***"`)
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// quotedValue is a value as the messages about TOML quote it.
var quotedValue = regexp.MustCompile(`\b((?:found|got|value|datetime|integer|float):?) ("(?:\\.|[^"\\])*"|'[^']*')`)

// configurationFile is the absolute path of the file, empty without one.
func (b *Broker) configurationFile() string {
	if b.config.File == "" {
		return ""
	}
	file, err := filepath.Abs(b.config.File)
	if err != nil {
		return b.config.File
	}
	return file
}

func (b *Broker) configuration() introspection.Configuration {
	b.reloads.mu.Lock()
	defer b.reloads.mu.Unlock()
	r := &b.reloads
	return introspection.Configuration{File: b.configurationFile(), ReloadedAt: r.at, Refused: r.refused, Restart: r.restart}
}

func (b *Broker) configurationFacts() diagnosis.Configuration {
	c := b.configuration()
	return diagnosis.Configuration{File: c.File, ReloadedAt: c.ReloadedAt, Refused: c.Refused, Restart: c.Restart}
}
