package introspection

import (
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Spec 03 1.8, choice 1: the first family whose mark occurs in the name.
func TestAgentOf(t *testing.T) {
	for client, want := range map[string]string{
		"claude-ai": "claude", "Claude Code": "claude", "my CLAUDE gpt": "claude", "ChatGPT": "gpt", "openai-mcp": "gpt",
		"Mistral": "mistral", "GitHub Copilot": "copilot", "": "default", "unknown": "default", "clau de": "default",
	} {
		if got := agentOf(client); got != want {
			t.Errorf("agentOf(%q) = %q, want %q", client, got, want)
		}
	}
}

// Spec 03 1.8, choice 4, with the faults of 10.2 item 9 mended: no locale is
// English, for every family, and regions match whatever their case.
func TestChain(t *testing.T) {
	for _, c := range []struct{ client, version, locale, want string }{
		{"claude", "", "", "claude:en default:en"},
		{"claude", "", "fr", "claude:fr default:fr claude:en default:en"},
		{"claude", "", "fr-CA", "claude:fr-ca default:fr-ca claude:fr default:fr claude:en default:en"},
		{"claude", "", "fr_CA", "claude:fr-ca default:fr-ca claude:fr default:fr claude:en default:en"},
		{"other", "", "zh-CN", "default:zh-cn default:zh default:en"},
		{"other", "", "", "default:en"},
		{"other", "", "en", "default:en"},
		{"other", "", "EN-gb", "default:en-gb default:en"},
		{"other", "", "de", "default:de default:en"},
		{"claude", "1.2", "", "claude:en@1.2 claude:en default:en@1.2 default:en"},
		{"other", "1.2", "fr", "default:fr@1.2 default:fr default:en@1.2 default:en"},
	} {
		if got := strings.Join(newWordings(c.locale).chain(c.client, c.version), " "); got != c.want {
			t.Errorf("%q %q, locale %q:\n got %s\nwant %s", c.client, c.version, c.locale, got, c.want)
		}
	}
}

// What is packaged, and which of it a client gets.
func TestPackagedGrammar(t *testing.T) {
	want := []string{"claude:en", "claude:fr", "claude:zh", "default:en", "default:fr", "default:zh"}
	if got := slices.Sorted(maps.Keys(inEnglish(t).byKey)); !slices.Equal(got, want) {
		t.Errorf("packaged are %q, want %q", got, want)
	}
	for _, c := range []struct{ client, locale, want string }{
		{"claude", "", "claude:en"}, {"claude", "fr-CA", "claude:fr"}, {"claude", "zh", "claude:zh"}, {"claude", "de", "claude:en"},
		{"other", "", "default:en"}, {"other", "zh-CN", "default:zh"}, {"openai", "fr", "default:fr"}, {"other", "de", "default:en"},
	} {
		if got := inLocale(t, c.locale).lists(c.client, "1", pages).grammar; got != c.want {
			t.Errorf("%q, locale %q: grammar %q, want %q", c.client, c.locale, got, c.want)
		}
	}
}

// The packaged languages say all that English says, and the topics by name.
func TestPackagedIsComplete(t *testing.T) {
	w := inEnglish(t)
	if err := w.complete(); err != nil {
		t.Error(err)
	}
	base := w.byKey[baseline]
	for _, key := range []string{"default:fr", "default:zh"} {
		have := w.byKey[key]
		for name, text := range base.Tools {
			if have.Tools[name].Description == "" || len(have.Tools[name].Properties) != len(text.Properties) {
				t.Errorf("%s does not say all of the tool %s", key, name)
			}
		}
		for _, topic := range pages {
			if item := have.Resources[prefixGuide+topic.Topic]; item.Name == "" || item.Description == "" {
				t.Errorf("%s does not say all of the page %s", key, topic.Topic)
			}
		}
		for uri := range base.Resources {
			if item := have.Resources[uri]; item.Name == "" || item.Description == "" {
				t.Errorf("%s does not say all of the resource %s", key, uri)
			}
		}
		for uri := range base.Templates {
			if item := have.Templates[uri]; item.Name == "" || item.Description == "" {
				t.Errorf("%s does not say all of the template %s", key, uri)
			}
		}
	}
	for key, have := range w.byKey {
		for _, topic := range pages {
			if text := have.Tools[toolGuide].Description; !strings.Contains(text, topic.Topic) {
				t.Errorf("%s: broker_guide does not name the topic %s: %s", key, topic.Topic, text)
			}
		}
	}
}

// Each entry is looked up on its own: what a specific file does not say the next
// one does (spec 03 10.2 item 9).
func TestCascade(t *testing.T) {
	w := newWordings("fr-CA")
	w.load(files(
		"claude/fr-CA.json", `{"tools":{"broker_info":{"description":"1"}}}`,
		"claude/fr.json", `{"tools":{"broker_info":{"description":"2"},"providers_list":{"title":"T2"}}}`,
		"default/fr.json", `{"tools":{"providers_list":{"description":"3"},"provider_status":{"properties":{"name":"N3"}}},"resources":{"broker://info":{"name":"R3"}}}`,
		"claude/en.json", `{"tools":{"broker_guide":{"description":"4"}},"server":{"instructions":"I4"}}`,
		"default/en.json", `{"tools":{"broker_info":{"description":"5"},"providers_list":{"title":"T5","description":"5"},"provider_status":{"description":"5","properties":{"name":"N5"}},
			"broker_guide":{"description":"5","properties":{"topic":"P5"}},"broker_diagnose":{"description":"5","properties":{"slot":"S5"}}},
			"resources":{"broker://info":{"name":"R5","description":"R5"}},"templates":{"broker://guide/{topic}":{"title":"G5"}}}`,
	), func(what string) { t.Error(what) })
	chain := w.existing(w.chain("claude", ""))
	c := cascade{}
	for _, key := range chain {
		c = append(c, w.byKey[key])
	}
	got := words{
		Server: c.server(),
		Tools: map[string]toolWords{toolInfo: c.tool(toolInfo), toolList: c.tool(toolList), toolStatus: c.tool(toolStatus),
			toolGuide: c.tool(toolGuide), toolDiagnose: c.tool(toolDiagnose)},
		Resources: map[string]itemWords{uriInfo: c.resource(uriInfo)},
		Templates: map[string]itemWords{templateGuide: c.template(templateGuide)},
	}
	want := words{
		Server: serverWords{Instructions: "I4"},
		Tools: map[string]toolWords{
			toolInfo:     {Description: "1", Properties: map[string]string{}},
			toolList:     {Title: "T2", Description: "3", Properties: map[string]string{}},
			toolStatus:   {Description: "5", Properties: map[string]string{"name": "N3"}},
			toolGuide:    {Description: "4", Properties: map[string]string{"topic": "P5"}},
			toolDiagnose: {Description: "5", Properties: map[string]string{"slot": "S5"}},
		},
		Resources: map[string]itemWords{uriInfo: {Name: "R3", Description: "R5"}},
		Templates: map[string]itemWords{templateGuide: {Title: "G5"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
	if got := w.lists("claude", "", pages).grammar; got != "claude:fr-ca" {
		t.Errorf("grammar is %q", got)
	}
}

// A local file goes before the packaged one of its key, entry by entry; it may be
// for one version of a client, or in the older flat form.
func TestLocalFiles(t *testing.T) {
	w := inEnglish(t)
	before := w.byKey["claude:en"].Tools[toolGuide]
	w.load(files(
		"Claude/EN.json", `{"tools":{"broker_diagnose":{"description":"mine"}}}`,
		"claude/en@2.0.json", `{"broker_diagnose":{"description":"for 2.0"}}`,
		"default/de.json", `{"broker_info":{"description":"flach"}}`,
	), func(what string) { t.Error(what) })
	if got := w.byKey["claude:en"].Tools[toolDiagnose].Description; got != "mine" {
		t.Errorf("the local text does not win: %q", got)
	}
	if diff := cmp.Diff(before.Description, w.byKey["claude:en"].Tools[toolGuide].Description); diff != "" {
		t.Errorf("the packaged text is lost (-want +got):\n%s", diff)
	}
	if got := w.lists("Claude", "2.0", pages); got.grammar != "claude:en@2.0" || !strings.Contains(string(got.plain.tools), "for 2.0") {
		t.Errorf("version 2.0 gets %s: %s", got.grammar, got.plain.tools)
	}
	if got := w.lists("Claude", "2.1", pages); got.grammar != "claude:en" || !strings.Contains(string(got.plain.tools), "mine") {
		t.Errorf("version 2.1 gets %s: %s", got.grammar, got.plain.tools)
	}
	if got := w.byKey["default:de"].Tools[toolInfo].Description; got != "flach" {
		t.Errorf("the flat form reads %q", got)
	}
	if n := len(w.cache); n != 2 {
		t.Errorf("%d renderings are kept, want 2", n)
	}
}

// What cannot be used is named and left out; the rest of a file, and the other
// files, count.
func TestUnusableFiles(t *testing.T) {
	w := inEnglish(t)
	var said []string
	w.load(files(
		"README.md", "x",
		"cursor/en.json", `{}`,
		"claude/@1.json", `{}`, "claude/.json", `{}`, "claude/en@.json", `{}`, "claude/notes.txt", `x`,
		"default/en.json", `{"tools":`,
		"default/fr.json", `{"tools":[]}`,
		"default/zh.json", `{"tools":{"nope":{},"broker_info":{"description":"kept","properties":{"x":"y"}},"provider_status":{"properties":{"slot":"y"}}},
			"resources":{"broker://nope":{},"broker://guide/mine":{}},"templates":{"broker://providers/{slot}":{}},"phrases":{"x":"y"}}`,
	), func(what string) { said = append(said, what) })
	want := []string{
		`claude/.json: the name must be <locale>.json or <locale>@<version>.json`,
		`claude/@1.json: the name must be <locale>.json or <locale>@<version>.json`,
		`claude/en@.json: the name must be <locale>.json or <locale>@<version>.json`,
		`cursor: no client is of the family "cursor"; there are default, claude, gpt, mistral, copilot`,
		`default/en.json: unexpected end of JSON input`,
		`default/fr.json: json: cannot unmarshal array into Go struct field words.tools of type map[string]introspection.toolWords`,
		`default/zh.json: the tool "broker_info" has no argument "x"`,
		`default/zh.json: there is no tool "nope"`,
		`default/zh.json: the tool "provider_status" has no argument "slot"`,
		`default/zh.json: there is no resource "broker://nope"`,
		`default/zh.json: there is no template "broker://providers/{slot}"`,
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("reported (-want +got):\n%s", diff)
	}
	if got := w.byKey["default:zh"].Tools[toolInfo].Description; got != "kept" {
		t.Errorf("the rest of the file is lost: %q", got)
	}
	if err := w.complete(); err != nil {
		t.Errorf("the baseline is lost: %v", err)
	}
	said = nil
	w.load(failing{}, func(what string) { said = append(said, what) })
	if diff := cmp.Diff([]string{"open .: file does not exist"}, said); diff != "" {
		t.Errorf("a directory that is not there (-want +got):\n%s", diff)
	}
}

// failing is a directory that does not exist.
type failing struct{}

func (failing) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// Spec 03 1.8: the broker refuses to start without a full baseline.
func TestBaselineMustBeComplete(t *testing.T) {
	for _, c := range []struct{ without, want string }{
		{"tools", `the wording default:en lacks a description of the tool "broker_info"`},
		{"properties", `the wording default:en lacks a description of the argument "name" of "provider_status"`},
		{"resources", `the wording default:en lacks a name or description of the resource "broker://info"`},
		{"templates", `the wording default:en lacks a name or description of the template "broker://providers/{name}"`},
	} {
		w := inEnglish(t)
		base := *w.byKey[baseline]
		switch c.without {
		case "tools":
			base.Tools = nil
		case "properties":
			base.Tools = maps.Clone(base.Tools)
			base.Tools[toolStatus] = toolWords{Description: "x"}
		case "resources":
			base.Resources = nil
		case "templates":
			base.Templates = nil
		}
		w.byKey[baseline] = &base
		if err := w.complete(); err == nil || err.Error() != c.want {
			t.Errorf("without %s: %v", c.without, err)
		}
	}
	if err := newWordings("").complete(); err == nil {
		t.Error("no wording at all is complete")
	}
}

// Spec 03 10.2 item 8: the wording is of the session, not of the server.
func TestWordingPerSession(t *testing.T) {
	w := newWorld(t, func(c *settings) { c.wordings = inLocale(t, "fr") })
	w.join(1)
	w.join(2)
	list := func(session uint64, method string) string {
		return strings.TrimPrefix(w.effects(w.request(session, `"method":"`+method+`"`))[0], map[uint64]string{1: "c1 <- ", 2: "c2 <- "}[session])
	}
	french := list(2, "tools/list")
	w.effects(w.request(1, `"method":"initialize","params":{"clientInfo":{"name":"claude"}}`))
	if list(2, "tools/list") != french || list(1, "tools/list") == french {
		t.Error("one session's initialize changes what another reads")
	}
	if claude := list(1, "tools/list"); !strings.Contains(claude, "ne devinez pas") || !strings.Contains(claude, "Le nom exact du slot, casse comprise") {
		t.Errorf("a French Claude session reads %s", claude)
	}
	if got := list(1, "resources/list"); !strings.Contains(got, `"name":"Identité du broker"`) || !strings.Contains(got, `"name":"Guide : dépannage"`) {
		t.Errorf("a French Claude session sees the resources %s", got)
	}
	if got := list(1, "resources/templates/list"); !strings.Contains(got, `"name":"Page du guide"`) {
		t.Errorf("a French Claude session sees the templates %s", got)
	}
	w.effects(w.request(1, `"method":"initialize","params":{"clientInfo":{"name":"other"}}`))
	if list(1, "tools/list") != french {
		t.Error("a new initialize does not choose the wording anew")
	}
}
