package introspection

import (
	"cmp"
	"fmt"
	"strings"
)

// lists are the results of the list methods for one choice of wording.
type lists struct {
	plain, full         catalog // full: of a broker that keeps upstreams
	grammar             string  // the most specific key that exists
	title, instructions string
}

type catalog struct{ tools, resources, templates []byte }

// lists returns what a client is shown. They are rendered once for each chain of
// keys that exist, so their number is bounded by that of the files.
func (w *wordings) lists(client, version string, topics []Topic) *lists {
	keys := w.existing(w.chain(client, version))
	id := strings.Join(keys, " ")
	if have := w.cache[id]; have != nil {
		return have
	}
	c := make(cascade, len(keys))
	for i, key := range keys {
		c[i] = w.byKey[key]
	}
	server := c.server()
	rendered := &lists{
		plain: c.catalog(topics, false), full: c.catalog(topics, true),
		title: server.Title, instructions: server.Instructions,
	}
	if len(keys) > 0 {
		rendered.grammar = keys[0]
	}
	w.cache[id] = rendered
	return rendered
}

func (c cascade) catalog(topics []Topic, upstreams bool) catalog {
	return catalog{toolsList(c, topics, upstreams), resourcesList(c, topics, upstreams), templatesList(c, upstreams)}
}

type listedTool struct {
	Name        string      `json:"name"`
	Title       string      `json:"title,omitempty"`
	Description string      `json:"description"`
	InputSchema schema      `json:"inputSchema"`
	Annotations annotations `json:"annotations"`
}

type schema struct {
	Type       string              `json:"type"`
	Properties map[string]property `json:"properties"`
	Required   []string            `json:"required,omitempty"`
	Additional bool                `json:"additionalProperties"`
}

type property struct {
	Type        string   `json:"type"`
	Enum        []string `json:"enum,omitempty"`
	Description string   `json:"description"`
}

// annotations let a host call the tools that only read without asking its user.
type annotations struct {
	ReadOnly  bool `json:"readOnlyHint"`
	OpenWorld bool `json:"openWorldHint"`
}

type listedItem struct {
	URI         string `json:"uri,omitempty"`
	Template    string `json:"uriTemplate,omitempty"`
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	MimeType    string `json:"mimeType"`
	Description string `json:"description"`
}

func toolsList(c cascade, topics []Topic, upstreams bool) []byte {
	var list struct {
		Tools []listedTool `json:"tools"`
	}
	for i := range tools {
		t, text := &tools[i], c.tool(tools[i].name)
		if t.upstreams && !upstreams {
			continue
		}
		list.Tools = append(list.Tools, listedTool{
			Name: t.name, Title: text.Title, Description: text.Description,
			InputSchema: t.schema(text, topics), Annotations: annotations{ReadOnly: !t.acts},
		})
	}
	return encode(list)
}

func (t *tool) schema(text toolWords, topics []Topic) schema {
	s := schema{Type: "object", Properties: map[string]property{}}
	if t.takes == nil {
		return s
	}
	p := property{Type: "string", Description: text.Properties[t.takes.name]}
	if t.takes.topics {
		for _, topic := range topics {
			p.Enum = append(p.Enum, topic.Topic)
		}
	}
	if t.takes.required {
		s.Required = []string{t.takes.name}
	}
	s.Properties[t.takes.name] = p
	return s
}

// resourcesList lists the pages of the guide under their own titles where no
// wording has others.
func resourcesList(c cascade, topics []Topic, upstreams bool) []byte {
	var list struct {
		Resources []listedItem `json:"resources"`
	}
	add := func(uri, mime string, own Topic) {
		text := c.resource(uri)
		list.Resources = append(list.Resources, listedItem{
			URI: uri, Name: cmp.Or(text.Name, own.Title), Title: text.Title, MimeType: mime,
			Description: cmp.Or(text.Description, own.Summary),
		})
	}
	add(uriInfo, mimeJSON, Topic{})
	add(uriProviders, mimeJSON, Topic{})
	if upstreams {
		add(uriInstances, mimeJSON, Topic{})
	}
	for _, topic := range topics {
		add(prefixGuide+topic.Topic, mimeMarkdown, topic)
	}
	return encode(list)
}

func templatesList(c cascade, upstreams bool) []byte {
	var list struct {
		Templates []listedItem `json:"resourceTemplates"`
	}
	add := func(uri, mime string) {
		text := c.template(uri)
		list.Templates = append(list.Templates, listedItem{
			Template: uri, Name: text.Name, Title: text.Title, MimeType: mime, Description: text.Description,
		})
	}
	add(templateProvider, mimeJSON)
	if upstreams {
		add(templateInstance, mimeJSON)
	}
	add(templateGuide, mimeMarkdown)
	return encode(list)
}

// complete says which text the baseline lacks. Without a full baseline a client
// could be shown a tool that says nothing.
func (w *wordings) complete() error {
	var c cascade
	if base := w.byKey[baseline]; base != nil {
		c = cascade{base}
	}
	for i := range tools {
		t, text := &tools[i], c.tool(tools[i].name)
		if text.Description == "" {
			return fmt.Errorf("the wording %s lacks a description of the tool %q", baseline, t.name)
		}
		if t.takes != nil && text.Properties[t.takes.name] == "" {
			return fmt.Errorf("the wording %s lacks a description of the argument %q of %q", baseline, t.takes.name, t.name)
		}
	}
	for _, uri := range ownResources {
		if text := c.resource(uri); text.Name == "" || text.Description == "" {
			return fmt.Errorf("the wording %s lacks a name or description of the resource %q", baseline, uri)
		}
	}
	for _, uri := range ownTemplates {
		if text := c.template(uri); text.Name == "" || text.Description == "" {
			return fmt.Errorf("the wording %s lacks a name or description of the template %q", baseline, uri)
		}
	}
	return nil
}
