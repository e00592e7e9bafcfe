package main

import (
	"maps"
	"slices"
	"strings"
	"time"

	"mcpbroker/ingress/bundle"
)

// bundleReport is what inspect found, for machines. Like the text it tells the names of
// variables and of platforms only, and no value of a sensitive option.
type bundleReport struct {
	File            string                `json:"file"`
	Name            string                `json:"name"`
	DisplayName     string                `json:"displayName,omitempty"`
	Version         string                `json:"version"`
	ManifestVersion string                `json:"manifestVersion,omitempty"`
	Description     string                `json:"description,omitempty"`
	Author          string                `json:"author,omitempty"`
	License         string                `json:"license,omitempty"`
	Server          bundleServer          `json:"server"`
	Platforms       []string              `json:"platforms"`
	Runtimes        map[string]string     `json:"runtimes"`
	Tools           []string              `json:"tools"`
	UserConfig      map[string]userOption `json:"userConfig"`
	Size            int64                 `json:"size"`
	Unpacked        int64                 `json:"unpacked"`
	SHA256          string                `json:"sha256"`
	Signatures      bundleSignatures      `json:"signatures"`
	Files           []bundledFile         `json:"files"`
}

type bundleServer struct {
	Type       string   `json:"type"`
	EntryPoint string   `json:"entryPoint,omitempty"`
	Command    []string `json:"command,omitempty"`
	Variables  []string `json:"variables,omitempty"`
	Overrides  []string `json:"overrides,omitempty"`
}

type userOption struct {
	Type      string `json:"type"`
	Title     string `json:"title,omitempty"`
	Multiple  bool   `json:"multiple"`
	Required  bool   `json:"required"`
	Sensitive bool   `json:"sensitive"`
	Default   any    `json:"default"`
}

type bundleSignatures struct {
	Detached string             `json:"detached,omitempty"`
	Embedded *embeddedSignature `json:"embedded,omitempty"`
	Refused  string             `json:"embeddedRefused,omitempty"`
}

type embeddedSignature struct {
	Key       string    `json:"key"`
	Signer    string    `json:"signer"`
	Issuer    string    `json:"issuer"`
	NotBefore time.Time `json:"notBefore"`
	NotAfter  time.Time `json:"notAfter"`
}

type bundledFile struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
	Mode string `json:"mode"`
}

func reportOf(file string, r *bundle.Report) bundleReport {
	m := r.Manifest
	out := bundleReport{
		File: file, Name: m.Name, DisplayName: m.DisplayName, Version: m.Version, ManifestVersion: m.ManifestVersion,
		Description: m.Description, Author: m.Author, License: m.License, Server: bundleServer{Type: m.Server.Type, EntryPoint: m.Server.EntryPoint},
		Platforms: append([]string{}, m.Platforms...), Runtimes: map[string]string{}, Tools: append([]string{}, m.Tools...),
		UserConfig: map[string]userOption{}, Size: r.Size, Unpacked: r.Unpacked, SHA256: r.SHA256, Files: []bundledFile{},
	}
	maps.Copy(out.Runtimes, m.Runtimes)
	if c := m.Server.MCPConfig; c != nil {
		out.Server.Command = append([]string{c.Command}, c.Args...)
		out.Server.Variables = slices.Sorted(maps.Keys(c.Env))
		out.Server.Overrides = slices.Sorted(maps.Keys(c.Overrides))
	}
	for key, o := range m.UserConfig {
		if o.Sensitive {
			o.Default = nil
		}
		out.UserConfig[key] = userOption{o.Type, o.Title, o.Multiple, o.Required, o.Sensitive, o.Default}
	}
	out.Signatures.Detached = r.Detached
	if e := r.Embedded; e != nil {
		out.Signatures.Embedded = &embeddedSignature{e.Key, e.Subject, e.Issuer, e.NotBefore.UTC(), e.NotAfter.UTC()}
	}
	if r.EmbeddedErr != nil {
		out.Signatures.Refused = strings.TrimSpace(r.EmbeddedErr.Error())
	}
	for _, f := range r.Files {
		out.Files = append(out.Files, bundledFile{f.Name, f.Size, f.Mode.String()})
	}
	return out
}
