package egress

import (
	"fmt"
	"strings"
)

// OriginRule says which Origin headers may pass.
type OriginRule interface {
	Allow(origin string) bool
	IsZero() bool   // nothing is configured, and so nothing allowed
	String() string // the rule as the operator wrote it
}

// CheckOrigin applies rule against DNS rebinding (spec 01 5.5). It returns the
// description of a refusal, empty when the request may pass: it has no Origin, or
// exactly one that is allowed. endpoint is the URL path named in the text. A nil
// rule allows none.
func CheckOrigin(rule OriginRule, header []string, endpoint string) string {
	configured := rule != nil && !rule.IsZero()
	switch {
	case len(header) == 0, configured && len(header) == 1 && rule.Allow(header[0]):
		return ""
	case configured:
		return fmt.Sprintf(`Origin "%s" is not allowed on %s. allowedOrigins (MCP_BROKER_ALLOWED_ORIGINS) is compared verbatim, scheme, port and trailing slash included, and holds: %s.`,
			strings.Join(header, ", "), endpoint, rule)
	}
	return fmt.Sprintf(`Origin "%s" is not allowed on %s. No origin is allowed by default; pages served by the broker are not exempt. Add the origin to allowedOrigins or MCP_BROKER_ALLOWED_ORIGINS.`,
		strings.Join(header, ", "), endpoint)
}
