package config

// unavailableKeys are keys that configurations of this kind of broker have and
// that this version cannot honour. They refuse the start: an operator who set
// one relies on it.
func unavailableKeys() []string {
	return []string{
		"locale", "stdioProvider", "resourceSubscriptions", "securityFile", "auth", "www",
		"stdioUpstreams", "mcpServers", "mcpbBundles", "telemetry", "mdns", "serverRequests",
	}
}

func unavailableSlotKeys() []string { return []string{"serverRequests"} }

// securityKeys have their place in the security file only (spec 03 5.1).
func securityKeys() []string { return []string{"providers", "authorization", "limits"} }

// unavailableEnv maps variables to the key they would set.
func unavailableEnv() map[string]string {
	return map[string]string{
		"MCP_BROKER_LOCALE":                       "locale",
		"MCP_BROKER_STDIO_PROVIDER":               "stdioProvider",
		"MCP_BROKER_MAX_SUBSCRIPTIONS_PER_CLIENT": "resourceSubscriptions.maxSubscriptionsPerClient",
		"MCP_BROKER_MAX_SUBSCRIPTIONS_PER_SLOT":   "resourceSubscriptions.maxSubscriptionsPerSlot",
		"MCP_BROKER_MAX_RESOURCE_URI_LENGTH":      "resourceSubscriptions.maxResourceUriLength",
		"MCP_BROKER_SECURITY_FILE":                "securityFile",
		"MCP_BROKER_AUTH_ENABLED":                 "auth.enabled",
		"MCP_BROKER_PUBLIC_BASE_URL":              "auth.publicBaseUrl",
		"MCP_BROKER_JWKS":                         "auth.jwks",
		"MCP_BROKER_ISSUER":                       "auth.issuer",
		"MCP_BROKER_PROVIDER_SECRET":              "auth.providerSecret",
		"MCP_BROKER_OPEN":                         "www.open",
		"MCP_BROKER_WWW_DIR":                      "www.mounts",
		"MCP_BROKER_BUNDLE_DIR":                   "www.mounts",
		"MCP_BROKER_SERVER_REQUESTS":              "serverRequests",
	}
}

// telemetryEnv are variables that programs of other makers read too, so that
// finding one set says little about this broker: they are warned about only.
func telemetryEnv() []string {
	return []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS"}
}
