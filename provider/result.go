package provider

import "encoding/json"

// Result is what a tool call returns.
type Result struct {
	Content []Content
	// Structured is a JSON object for clients that read structured results;
	// empty means none.
	Structured json.RawMessage
	// IsError marks a failure of the tool, which the model may read and act on.
	IsError bool
}

// Content is one item of a result: text, or an image or audio clip.
type Content struct {
	Type     string // "text", "image" or "audio"; empty means "text"
	Text     string
	Data     []byte // of an image or audio clip; sent in base64
	MIMEType string
}

// Text returns a result with one text item per part.
func Text(parts ...string) *Result {
	r := &Result{}
	for _, p := range parts {
		r.Content = append(r.Content, Content{Text: p})
	}
	return r
}

func errorResult(err error) *Result {
	r := Text(err.Error())
	r.IsError = true
	return r
}

// MarshalJSON encodes r as a CallToolResult.
func (r *Result) MarshalJSON() ([]byte, error) {
	out := struct {
		Content    []any           `json:"content"`
		Structured json.RawMessage `json:"structuredContent,omitempty"`
		IsError    bool            `json:"isError,omitempty"`
	}{Content: []any{}, Structured: r.Structured, IsError: r.IsError}
	for _, c := range r.Content {
		out.Content = append(out.Content, c.wire())
	}
	return marshal(out)
}

func (c Content) wire() any {
	if c.Type == "" || c.Type == "text" {
		return struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}{"text", c.Text}
	}
	data := c.Data
	if data == nil {
		data = []byte{}
	}
	return struct {
		Type     string `json:"type"`
		Data     []byte `json:"data"`
		MIMEType string `json:"mimeType"`
	}{c.Type, data, c.MIMEType}
}
