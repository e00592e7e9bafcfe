// Package egress is the client side of the broker's port: HTTP routing, CORS and
// the origin rule. The transports are below it, one package each.
package egress
