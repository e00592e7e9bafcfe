package introspection

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// Wording files say the same in the words that suit a client and a language:
// <agent>/<locale>.json, or <agent>/<locale>@<version>.json for one version of a
// client. They reword this slot's tools, resources and templates (spec 03 1.8).

// words are the texts of one key, <agent>:<locale>[@<version>].
type words struct {
	Server    serverWords          `json:"server"`
	Tools     map[string]toolWords `json:"tools"`
	Resources map[string]itemWords `json:"resources"`
	Templates map[string]itemWords `json:"templates"`
}

type serverWords struct {
	Title        string `json:"title"`
	Instructions string `json:"instructions"`
}

type toolWords struct {
	Title       string            `json:"title"`
	Description string            `json:"description"`
	Properties  map[string]string `json:"properties"`
}

type itemWords struct {
	Name        string `json:"name"`
	Title       string `json:"title"`
	Description string `json:"description"`
}

const (
	defaultAgent  = "default"
	defaultLocale = "en"
	baseline      = defaultAgent + ":" + defaultLocale
)

// families are the agents, each with what in clientInfo.name tells it.
var families = []struct {
	agent string
	marks []string
}{
	{"claude", []string{"claude"}},
	{"gpt", []string{"gpt", "openai"}},
	{"mistral", []string{"mistral"}},
	{"copilot", []string{"copilot"}},
}

// agentOf is the family of a client.
func agentOf(client string) string {
	client = strings.ToLower(client)
	for _, family := range families {
		for _, mark := range family.marks {
			if strings.Contains(client, mark) {
				return family.agent
			}
		}
	}
	return defaultAgent
}

func knownAgent(agent string) bool {
	for _, family := range families {
		if family.agent == agent {
			return true
		}
	}
	return agent == defaultAgent
}

// parseWords reads a wording file. One without any section is of the older flat
// form: tool names at the top.
func parseWords(text []byte) (*words, error) {
	var sections map[string]json.RawMessage
	if err := json.Unmarshal(text, &sections); err != nil {
		return nil, err
	}
	w := &words{}
	for _, section := range []string{"tools", "resources", "templates", "server"} {
		if _, ok := sections[section]; ok {
			return w, json.Unmarshal(text, w)
		}
	}
	return w, json.Unmarshal(text, &w.Tools)
}

// wordings are all texts by key.
type wordings struct {
	locale string
	byKey  map[string]*words
	cache  map[string]*lists // by the keys of a chain that exist
}

func newWordings(locale string) *wordings {
	return &wordings{locale: normal(locale), byKey: map[string]*words{}, cache: map[string]*lists{}}
}

// normal spells locales in one way: fr_CA is fr-ca.
func normal(locale string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimSpace(locale), "_", "-"))
}

// load adds the files of a directory tree. Texts that come later win, one by one.
// What cannot be used is reported and left out.
func (w *wordings) load(files fs.FS, report func(string)) {
	agents, err := fs.ReadDir(files, ".")
	if err != nil {
		report(err.Error())
		return
	}
	for _, agent := range agents {
		if !agent.IsDir() {
			continue
		}
		if name := strings.ToLower(agent.Name()); !knownAgent(name) {
			report(fmt.Sprintf("%s: no client is of the family %q; there are %s", agent.Name(), name, agentNames()))
			continue
		}
		entries, err := fs.ReadDir(files, agent.Name())
		if err != nil {
			report(err.Error())
			continue
		}
		for _, entry := range entries {
			if !entry.IsDir() && strings.HasSuffix(entry.Name(), ".json") {
				w.loadFile(files, agent.Name(), entry.Name(), report)
			}
		}
	}
}

func agentNames() string {
	names := []string{defaultAgent}
	for _, family := range families {
		names = append(names, family.agent)
	}
	return strings.Join(names, ", ")
}

func (w *wordings) loadFile(files fs.FS, agent, name string, report func(string)) {
	file := path.Join(agent, name)
	locale, version, versioned := strings.Cut(strings.TrimSuffix(name, ".json"), "@")
	if locale == "" || versioned && version == "" {
		report(file + ": the name must be <locale>.json or <locale>@<version>.json")
		return
	}
	text, err := fs.ReadFile(files, file)
	if err != nil {
		report(err.Error())
		return
	}
	parsed, err := parseWords(text)
	if err != nil {
		report(fmt.Sprintf("%s: %v", file, err))
		return
	}
	for _, unknown := range parsed.strangers() {
		report(fmt.Sprintf("%s: %s", file, unknown))
	}
	key := keyOf(strings.ToLower(agent), normal(locale), version)
	if have := w.byKey[key]; have != nil {
		parsed = have.with(parsed)
	}
	w.byKey[key] = parsed
}

func keyOf(agent, locale, version string) string {
	if version != "" {
		locale += "@" + version
	}
	return agent + ":" + locale
}

// strangers lists the entries that reword nothing.
func (w *words) strangers() []string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(w.Tools)) {
		t := findTool(name)
		if t == nil {
			found = append(found, fmt.Sprintf("there is no tool %q", name))
			continue
		}
		for _, property := range slices.Sorted(maps.Keys(w.Tools[name].Properties)) {
			if t.takes == nil || t.takes.name != property {
				found = append(found, fmt.Sprintf("the tool %q has no argument %q", name, property))
			}
		}
	}
	for _, uri := range slices.Sorted(maps.Keys(w.Resources)) {
		if !slices.Contains(ownResources, uri) && !strings.HasPrefix(uri, prefixGuide) {
			found = append(found, fmt.Sprintf("there is no resource %q", uri))
		}
	}
	for _, uri := range slices.Sorted(maps.Keys(w.Templates)) {
		if !slices.Contains(ownTemplates, uri) {
			found = append(found, fmt.Sprintf("there is no template %q", uri))
		}
	}
	return found
}

// with returns w under the texts of over.
func (w *words) with(over *words) *words {
	merged := &words{Tools: map[string]toolWords{}, Resources: map[string]itemWords{}, Templates: map[string]itemWords{}}
	chain := cascade{over, w}
	merged.Server = chain.server()
	for _, from := range chain {
		for name := range from.Tools {
			merged.Tools[name] = chain.tool(name)
		}
		for uri := range from.Resources {
			merged.Resources[uri] = chain.resource(uri)
		}
		for uri := range from.Templates {
			merged.Templates[uri] = chain.template(uri)
		}
	}
	return merged
}

// chain lists the keys for a client, most specific first: its language before its
// family, since a text in another language helps nobody; English comes last.
func (w *wordings) chain(client, version string) []string {
	locales := []string{defaultLocale}
	if w.locale != "" {
		language, _, _ := strings.Cut(w.locale, "-")
		locales = []string{w.locale, language, defaultLocale}
	}
	var keys []string
	for _, locale := range locales {
		for _, agent := range []string{agentOf(client), defaultAgent} {
			if version != "" {
				keys = append(keys, keyOf(agent, locale, version))
			}
			keys = append(keys, keyOf(agent, locale, ""))
		}
	}
	return unique(keys)
}

func unique(keys []string) []string {
	var kept []string
	for _, key := range keys {
		if !slices.Contains(kept, key) {
			kept = append(kept, key)
		}
	}
	return kept
}

// existing are the keys of a chain that have texts.
func (w *wordings) existing(chain []string) []string {
	return slices.DeleteFunc(chain, func(key string) bool { return w.byKey[key] == nil })
}

// cascade are the texts for one client, most specific first. The first text that
// is there is taken, for each entry on its own.
type cascade []*words

func first(c cascade, text func(*words) string) string {
	for _, w := range c {
		if found := text(w); found != "" {
			return found
		}
	}
	return ""
}

func (c cascade) server() serverWords {
	return serverWords{
		Title:        first(c, func(w *words) string { return w.Server.Title }),
		Instructions: first(c, func(w *words) string { return w.Server.Instructions }),
	}
}

func (c cascade) tool(name string) toolWords {
	merged := toolWords{
		Title:       first(c, func(w *words) string { return w.Tools[name].Title }),
		Description: first(c, func(w *words) string { return w.Tools[name].Description }),
		Properties:  map[string]string{},
	}
	for _, from := range c {
		for property := range from.Tools[name].Properties {
			merged.Properties[property] = first(c, func(w *words) string { return w.Tools[name].Properties[property] })
		}
	}
	return merged
}

func (c cascade) resource(uri string) itemWords {
	return c.item(func(w *words) itemWords { return w.Resources[uri] })
}

func (c cascade) template(uri string) itemWords {
	return c.item(func(w *words) itemWords { return w.Templates[uri] })
}

func (c cascade) item(of func(*words) itemWords) itemWords {
	return itemWords{
		Name:        first(c, func(w *words) string { return of(w).Name }),
		Title:       first(c, func(w *words) string { return of(w).Title }),
		Description: first(c, func(w *words) string { return of(w).Description }),
	}
}
