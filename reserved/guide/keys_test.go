package guide_test

import (
	"go/ast"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mcpbroker/config"
)

// Every MCP_BROKER_ variable a page names exists: in the configuration, or as a
// constant of the program.
func TestVariablesExist(t *testing.T) {
	known := map[string]bool{}
	for _, v := range config.EnvVars() {
		known[v.Name] = true
	}
	inspect(t, "../../cmd/broker", func(n ast.Node) bool {
		if e, ok := n.(*ast.BasicLit); ok {
			known[text(e)] = true
		}
		return true
	})
	variable := regexp.MustCompile(`MCP_BROKER_[A-Z_]*[A-Z]`)
	for _, s := range lines(t) {
		for _, name := range variable.FindAllString(s.text, -1) {
			if !known[name] {
				t.Errorf("%s: there is no variable %s", s.page, name)
			}
		}
	}
}

// protocol lists words that look like keys of the configuration and are not.
var protocol = []string{
	"broker.toml", "index.html", "pendingCount", "params.uri",
}

// Every key a page names exists, and what a page assigns to it is valid.
func TestKeysExist(t *testing.T) {
	known, ofSlot := map[string]bool{}, map[string]bool{}
	collectKeys(reflect.TypeFor[config.Config](), "", known)
	collectKeys(reflect.TypeFor[config.Slot](), "", ofSlot)
	key := regexp.MustCompile(`^([a-z]+(?:[A-Z][A-Za-z]*)?(?:\.[a-z][A-Za-z]*)*)( = .+)?$`)
	for _, s := range lines(t) {
		m := key.FindStringSubmatch(s.text)
		if s.lang != "span" || m == nil || strings.HasPrefix(m[1], "provider.") || slices.Contains(protocol, m[1]) {
			continue
		}
		name, assigns := m[1], m[2] != ""
		isKey := assigns || strings.ContainsAny(name, ".ABCDEFGHIJKLMNOPQRSTUVWXYZ")
		if list := upstreamWith(name); list != "" && !known[name] {
			if assigns {
				parse(t, s, upstreams[list]+s.text)
			}
			continue
		}
		if isKey && !known[name] && !ofSlot[name] {
			t.Errorf("%s: there is no key %s", s.page, name)
		}
		switch {
		case assigns && known[name]:
			parse(t, s, s.text)
		case assigns:
			parse(t, s, "[slots.\"x\"]\n"+s.text)
		}
	}
}

// upstreams are the shortest entries of each list.
var upstreams = map[string]string{
	"stdioUpstreams": "[[stdioUpstreams]]\nname = 'x'\ncommand = 'x'\n",
	"mcpServers":     "[[mcpServers]]\nname = 'x'\nurl = 'https://x/'\n",
	"mcpbBundles":    "[[mcpbBundles]]\nname = 'x'\npath = 'x'\npublicKey = 'x'\n",
}

// upstreamWith returns a list whose entries take the key, if only of another type.
func upstreamWith(key string) string {
	for list, entry := range upstreams {
		_, err := config.Parse("page.toml", []byte(entry+key+" = inf\n"))
		if err != nil && !strings.Contains(err.Error(), "unknown key") {
			return list
		}
	}
	return ""
}

// Every TOML block is a valid configuration.
func TestConfigurationsAreValid(t *testing.T) {
	_, blocks := snippets(t)
	seen := 0
	for _, b := range blocks {
		if b.lang == "toml" {
			seen++
			parse(t, b, b.text)
		}
	}
	if seen < 3 {
		t.Errorf("only %d TOML blocks were found", seen)
	}
}

func parse(t *testing.T, s snippet, document string) {
	t.Helper()
	if _, err := config.Parse("page.toml", []byte(document)); err != nil {
		t.Errorf("%s: %v in\n%s", s.page, err, document)
	}
}

func collectKeys(typ reflect.Type, prefix string, known map[string]bool) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		name := prefix + f.Tag.Get("toml")
		if f.Tag.Get("toml") == "-" || f.Tag.Get("toml") == "" {
			continue
		}
		known[name] = true
		if f.Type.Kind() == reflect.Struct {
			collectKeys(f.Type, name+".", known)
		}
	}
}
