package aggregate

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Names of tools keep within maxName UTF-16 units: clients refuse longer ones
// (spec 03 3.4).
const (
	maxName  = 64
	hashSize = 8
	keptPart = maxName - 1 - hashSize
)

// toolName is the name of a member's tool in _all: its own behind the slot's, cut
// and told apart by a hash of the whole where that is too long.
//
// Characters stay as they are, dots, slashes, spaces and letters beyond ASCII as well:
// the vectors of spec 03 3.4 keep them, and a name in _all differs from that of another
// broker for no tool. A provider whose clients take letters, digits, "_" and "-" only
// names its slot and its tools so (spec 07 row 52). What a name stands for is looked up,
// never parsed.
func toolName(slot, tool string) string {
	whole := slot + "-" + tool
	if fits(whole) {
		return whole
	}
	return cut(whole, keptPart) + "-" + hash(whole)
}

// promptName is the same for a prompt, whose names have no limit.
func promptName(slot, prompt string) string { return slot + "-" + prompt }

// numbered is name number n among those that collide, within limit UTF-16 units;
// 0 is no limit.
func numbered(name string, n, limit int) string {
	suffix := "-" + strconv.Itoa(n)
	if limit > 0 {
		name = cut(name, limit-len(suffix))
	}
	return name + suffix
}

// cut keeps at most n UTF-16 units, and no half of a surrogate pair.
func cut(s string, n int) string {
	for i, r := range s {
		if n -= unitsOf(r); n < 0 {
			return s[:i]
		}
	}
	return s
}

// fits reports a name within the limit; it never has more units than bytes.
func fits(name string) bool { return len(name) <= maxName || units(name) <= maxName }

func units(s string) int {
	n := 0
	for _, r := range s {
		n += unitsOf(r)
	}
	return n
}

func unitsOf(r rune) int { return max(utf16.RuneLen(r), 1) }

// hash is eight characters of base 36 over the UTF-16 units.
func hash(s string) string {
	h := uint32(5381)
	for _, r := range s {
		if r < utf8.RuneSelf {
			h = h*33 + uint32(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			h = h*33 + uint32(unit)
		}
	}
	digits := strconv.FormatUint(uint64(h), 36)
	return "00000000"[:hashSize-len(digits)] + digits
}
