package config

import (
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
	for _, name := range sortedNames(c.Slots) {
		mine := c.Slots[name]
		their, both := other.Slots[name]
		mine.HealthCheck, their.HealthCheck = HealthCheck{}, HealthCheck{}
		if !both || mine != their {
			names = append(names, "slots."+name)
		}
	}
	for _, name := range sortedNames(other.Slots) {
		if _, both := c.Slots[name]; !both {
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
