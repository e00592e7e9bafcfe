package static

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"slices"
)

// SamplesIndex is the path of the samples index.
const SamplesIndex = "/__samples_index__"

// MaxSamples bounds the directory entries the index looks at.
const MaxSamples = 10_000

const samplesDir = "samples"

// serveSamples lists the plain files directly inside samples/ of the root mount,
// by name. Whatever is missing, the list is empty (spec 01 5.10).
func (f *Files) serveSamples(w http.ResponseWriter) {
	index := struct {
		Files []string `json:"files"`
	}{f.samples()}
	body, _ := json.Marshal(index) // strings always can be
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-cache")
	_, _ = w.Write(body)
}

// samples never returns nil, which would be written as null.
func (f *Files) samples() []string {
	names := []string{}
	for _, entry := range f.entries() {
		if entry.Type().IsRegular() {
			names = append(names, entry.Name())
		}
	}
	slices.Sort(names)
	return names
}

func (f *Files) entries() []fs.DirEntry {
	m := f.root()
	if m == nil {
		return nil
	}
	root, err := os.OpenRoot(m.dir)
	if err != nil {
		return nil
	}
	defer root.Close()
	// Opening what is no directory might block.
	if info, err := root.Stat(samplesDir); err != nil || !info.IsDir() {
		return nil
	}
	dir, err := root.Open(samplesDir)
	if err != nil {
		return nil
	}
	defer dir.Close()
	entries, _ := dir.ReadDir(MaxSamples)
	return entries
}
