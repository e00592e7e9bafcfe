// Package registry is the actor that knows every slot by name. It creates a slot
// on first reference, keeps reserved names out of providers' hands, bounds the
// number of slots by retiring unused ones, and keeps the inventory.
//
// It takes the messages of actors/msg/registry.go, and the claims and joins on
// their way to a slot: a slot can only be referred to through the registry, so a
// slot that is being retired cannot be joined behind its back.
package registry
