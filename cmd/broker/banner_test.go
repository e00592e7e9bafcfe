package main

import (
	"testing"

	"mcpbroker/config"
)

// Spec 01 8.4, F-44: the banner says whether WebSocket upgrades are checked.
func TestBannerUpgradeCheck(t *testing.T) {
	for check, want := range map[bool]string{false: "clients, plain frames, not origin-checked", true: "clients, plain frames, origin-checked"} {
		cfg := config.Default()
		cfg.CheckUpgradeOrigins = check
		found := false
		for _, r := range bannerRows(cfg, "https://h:1") {
			if r.key == "websocket" {
				found = true
				if r.value != "wss://h:1/<slot>" || r.note != want {
					t.Errorf("checked %v: %q %q", check, r.value, r.note)
				}
			}
		}
		if !found {
			t.Error("no row for raw WebSocket clients")
		}
	}
}
