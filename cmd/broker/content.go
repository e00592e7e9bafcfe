package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// contentBlock is one block of a tool's answer.
type contentBlock struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Data     string `json:"data"` // base64
	MIMEType string `json:"mimeType"`
	URI      string `json:"uri"`
	Resource *struct {
		URI      string  `json:"uri"`
		MIMEType string  `json:"mimeType"`
		Text     *string `json:"text"`
		Blob     string  `json:"blob"` // base64
	} `json:"resource"`
}

// printContent writes what a person can read: texts, a line for each of the
// others, and the structured content where there is nothing else.
func printContent(w io.Writer, result *toolResult) error {
	clean := func(s string) string { return s }
	if isTerminal(w) {
		clean = safeText
	}
	for _, b := range result.Content {
		if _, err := fmt.Fprintln(w, strings.TrimSuffix(clean(b.String()), "\n")); err != nil {
			return err
		}
	}
	if len(result.Content) > 0 || result.Structured == nil {
		return nil
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, result.Structured, "", "  "); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, clean(pretty.String()))
	return err
}

func (b *contentBlock) String() string {
	switch {
	case b.Type == "text":
		return b.Text
	case b.Type == "resource" && b.Resource != nil && b.Resource.Text != nil:
		return *b.Resource.Text
	case b.Type == "resource" && b.Resource != nil:
		return fmt.Sprintf("[resource %s, %s, %s]", b.Resource.URI, b.Resource.MIMEType, plural(decodedLen(b.Resource.Blob), "byte"))
	case b.Type == "resource_link":
		return fmt.Sprintf("[resource link %s]", b.URI)
	case b.Data != "":
		return fmt.Sprintf("[%s, %s, %s]", b.Type, b.MIMEType, plural(decodedLen(b.Data), "byte"))
	}
	return "[" + b.Type + "]"
}

// decodedLen is the length of what base64 text stands for.
func decodedLen(text string) int { return len(strings.TrimRight(text, "=")) * 3 / 4 }
