package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// packaged are the languages that come with the broker.
var packaged = []string{"en", "fr", "zh"}

// checkLocale refuses a language that nothing is written in: neither with the broker
// nor in the directory "grammars" beside the configuration (spec 03 1.8). Of fr-CA the
// texts of fr will do.
func (c *Config) checkLocale() error {
	if strings.TrimSpace(c.Locale) == "" {
		return nil
	}
	locale := normalLocale(c.Locale)
	language, _, _ := strings.Cut(locale, "-")
	written := slices.Clone(packaged)
	files, _ := filepath.Glob(filepath.Join(filepath.Dir(c.File), "grammars", "*", "*.json")) // an error is of the pattern
	for _, file := range files {
		name, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".json"), "@")
		written = append(written, normalLocale(name))
	}
	if slices.Contains(written, locale) || slices.Contains(written, language) {
		return nil
	}
	return fmt.Errorf(`must be %s, with or without a region, or one of the directory "grammars", not %s`, choiceOf(packaged), quote(c.Locale))
}

func normalLocale(s string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimSpace(s), "_", "-"))
}
