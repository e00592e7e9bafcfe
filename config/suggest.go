package config

import (
	"fmt"
	"sort"
	"strings"
)

// hint proposes the known name nearest to a misspelt one, or nothing.
func hint(name string, known []string) string {
	if best := Nearest(name, known); best != "" {
		return fmt.Sprintf(" (did you mean %q?)", best)
	}
	return ""
}

// Nearest returns the known name that is a few edits away from name, empty
// when none is. Wrong case alone costs nothing.
func Nearest(name string, known []string) string {
	best, bestCost := "", 1+len(name)/3
	for _, k := range known {
		cost := distance(strings.ToLower(name), strings.ToLower(k))
		if cost < bestCost || cost == bestCost && best == "" {
			best, bestCost = k, cost
		}
	}
	return best
}

// distance counts the characters to insert, delete, replace or swap with their
// neighbour to turn a into b.
func distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	if len(s) > 64 || len(t) > 64 {
		return len(s) + len(t)
	}
	rows := make([][]int, len(s)+1)
	for i := range rows {
		rows[i] = make([]int, len(t)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(s); i++ {
		for j := 1; j <= len(t); j++ {
			change := 1
			if s[i-1] == t[j-1] {
				change = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(s)][len(t)]
}

func sortedNames[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
