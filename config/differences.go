package config

import (
	"maps"
	"reflect"
	"slices"
)

// Differences names the settings, other than those of upstreams and of health
// checks, that differ between c and other.
func (c *Config) Differences(other *Config) []string {
	var names []string
	mine, theirs := c.keys(), other.keys()
	for i, k := range mine {
		if k.envOnly || slices.Contains(names, k.name) {
			continue
		}
		if !reflect.DeepEqual(held(k.value), held(theirs[i].value)) {
			names = append(names, k.name)
		}
	}
	slots := maps.Clone(other.Slots)
	if slots == nil {
		slots = make(map[string]Slot, len(c.Slots))
	}
	maps.Copy(slots, c.Slots)
	for _, name := range sortedNames(slots) {
		if c.Slots[name].settings() != other.Slots[name].settings() {
			names = append(names, "slots."+name)
		}
	}
	return names
}

// held is what the field behind a value holds.
func held(v value) any {
	switch v := v.(type) {
	case *mountsValue:
		return *v.p
	case *originsValue:
		return *v.p
	}
	return v.String()
}

// settings is the slot without its health check, with the defaults written out:
// an entry that says nothing is like none.
func (s Slot) settings() Slot {
	s.HealthCheck = HealthCheck{}
	if s.Initialize == "" {
		s.Initialize = InitializeCache
	}
	return s
}
