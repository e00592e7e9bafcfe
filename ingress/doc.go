// Package ingress is the provider side of the broker's port: it classifies
// WebSocket upgrades, tolerates slot names that are no valid URL escapes, and
// turns accepted sockets into actors.
package ingress
