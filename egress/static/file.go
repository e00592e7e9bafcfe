package static

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// writeTimeout bounds one write to a client that does not read.
const writeTimeout = 10 * time.Second

const indexFile = "index.html"

// serve answers with the file that segments name below the mount, or with the
// index of the directory they name. It goes through os.Root: symbolic links are
// followed as long as they stay below the directory.
func (m *mount) serve(w http.ResponseWriter, r *http.Request, segments []string, directoryOnly bool) {
	root, err := os.OpenRoot(m.dir)
	if err != nil {
		refuse(w, statusOf(err))
		return
	}
	defer root.Close()
	file, info, err := open(root, strings.Join(segments, "/"), directoryOnly)
	if err != nil {
		refuse(w, statusOf(err))
		return
	}
	defer file.Close()

	h := w.Header()
	h.Set("Content-Type", typeOf(info.Name()))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-cache") // kept, and asked about before each use
	h.Set("ETag", fmt.Sprintf(`"%x-%x"`, info.ModTime().UnixNano(), info.Size()))
	http.ServeContent(&patient{w, http.NewResponseController(w)}, r, "", info.ModTime(), file)
}

// errNoFile is something without content to serve: a directory without index,
// a device, a pipe.
var errNoFile = fmt.Errorf("no plain file: %w", fs.ErrNotExist)

// open finds a plain file. What is none is never opened: opening a pipe would
// block.
func open(root *os.Root, name string, directoryOnly bool) (*os.File, fs.FileInfo, error) {
	if name == "" {
		name = "."
	}
	local, err := filepath.Localize(name)
	if err != nil {
		return nil, nil, errNoFile // a name this system cannot have
	}
	info, err := root.Stat(local)
	switch {
	case err != nil:
		return nil, nil, err
	case info.IsDir():
		local = filepath.Join(local, indexFile)
		if info, err = root.Stat(local); err != nil {
			return nil, nil, err
		}
	case directoryOnly:
		return nil, nil, errNoFile
	}
	if !info.Mode().IsRegular() {
		return nil, nil, errNoFile // a directory called index.html, too (F-41)
	}
	file, err := root.Open(local)
	if err != nil {
		return nil, nil, err
	}
	if info, err = file.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = file.Close()
		return nil, nil, errors.Join(err, errNoFile)
	}
	return file, info, nil
}

// statusOf translates an error of the file system (F-41).
func statusOf(err error) int {
	var errno syscall.Errno
	switch {
	case errors.Is(err, fs.ErrPermission):
		return http.StatusForbidden
	case errors.Is(err, fs.ErrNotExist):
		return http.StatusNotFound
	case !errors.As(err, &errno):
		return http.StatusForbidden // os.Root itself refused: a link leaves the mount
	case errno == syscall.EMFILE, errno == syscall.ENFILE, errno == syscall.ENOMEM, errno == syscall.EIO:
		return http.StatusServiceUnavailable
	}
	return http.StatusNotFound // a file taken for a directory, a name too long, links in a circle
}

// typeOf goes by the extension; what is unknown is not shown by a browser.
func typeOf(name string) string {
	switch strings.ToLower(path.Ext(name)) {
	case ".html", ".htm":
		return "text/html; charset=utf-8"
	case ".js", ".mjs":
		return "application/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".json", ".map":
		return "application/json; charset=utf-8"
	case ".txt":
		return "text/plain; charset=utf-8"
	case ".md":
		return "text/markdown; charset=utf-8"
	case ".webmanifest":
		return "application/manifest+json; charset=utf-8"
	case ".wasm":
		return "application/wasm"
	case ".svg":
		return "image/svg+xml"
	case ".png":
		return "image/png"
	case ".jpg", ".jpeg":
		return "image/jpeg"
	case ".gif":
		return "image/gif"
	case ".webp":
		return "image/webp"
	case ".ico":
		return "image/x-icon"
	case ".woff2":
		return "font/woff2"
	case ".woff":
		return "font/woff"
	case ".glb":
		return "model/gltf-binary"
	case ".gltf":
		return "model/gltf+json"
	case ".mp4":
		return "video/mp4"
	case ".pdf":
		return "application/pdf"
	}
	return "application/octet-stream"
}

// patient gives each write its own deadline, so that a large file may take long
// and a client that stopped reading is cut.
type patient struct {
	http.ResponseWriter
	ctl *http.ResponseController
}

// Write implements io.Writer.
func (p *patient) Write(b []byte) (int, error) {
	_ = p.ctl.SetWriteDeadline(time.Now().Add(writeTimeout))
	return p.ResponseWriter.Write(b)
}
