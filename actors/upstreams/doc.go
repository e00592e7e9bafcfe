// Package upstreams keeps the providers the broker starts or dials itself: one
// actor for each, and one that keeps the set. What an upstream does next is
// decided by a pure State (core.go) along a table of transitions (table.go); the
// connection itself is a driver's business.
package upstreams
