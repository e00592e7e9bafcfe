package config

// unavailableKeys are keys that configurations of this kind of broker have and
// that this version cannot honour. They refuse the start: an operator who set
// one relies on it.
func unavailableKeys() []string {
	return []string{
		"securityFile", "auth", "telemetry", "mdns",
	}
}

// securityKeys have their place in the security file only (spec 03 5.1).
func securityKeys() []string { return []string{"providers", "authorization", "limits"} }

// unavailableEnv maps variables to the key they would set.
func unavailableEnv() map[string]string {
	return map[string]string{
		"MCP_BROKER_SECURITY_FILE":   "securityFile",
		"MCP_BROKER_AUTH_ENABLED":    "auth.enabled",
		"MCP_BROKER_PUBLIC_BASE_URL": "auth.publicBaseUrl",
		"MCP_BROKER_JWKS":            "auth.jwks",
		"MCP_BROKER_ISSUER":          "auth.issuer",
		"MCP_BROKER_PROVIDER_SECRET": "auth.providerSecret",
	}
}

// telemetryEnv are variables that programs of other makers read too, so that
// finding one set says little about this broker: they are warned about only.
func telemetryEnv() []string {
	return []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS"}
}
