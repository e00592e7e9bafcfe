package static

import (
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"slices"
	"syscall"
	"testing"
	"time"
)

// F-41: every error of the file system has an answer.
func TestStatusOf(t *testing.T) {
	wrap := func(err error) error { return &fs.PathError{Op: "openat", Path: "x", Err: err} }
	for _, c := range []struct {
		err  error
		want int
	}{
		{wrap(syscall.EACCES), 403},
		{wrap(syscall.EPERM), 403},
		{wrap(syscall.ENOENT), 404},
		{wrap(syscall.ENOTDIR), 404},
		{wrap(syscall.ENAMETOOLONG), 404},
		{wrap(syscall.ELOOP), 404},
		{wrap(syscall.EMFILE), 503},
		{wrap(syscall.ENFILE), 503},
		{wrap(syscall.EIO), 503},
		{errNoFile, 404},
		{wrap(errors.New("path escapes from parent")), 403},
	} {
		if got := statusOf(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
}

// F-40: decoded once, by segment.
func TestResolve(t *testing.T) {
	for _, c := range []struct {
		path  string
		want  []string
		where place
	}{
		{"/", nil, inside},
		{"", nil, inside},
		{"/a//b/./", []string{"a", "b"}, inside},
		{"/a/../b", []string{"b"}, inside},
		{"/a/%2E%2e/b", []string{"b"}, inside},
		{"/%252e", []string{"%2e"}, inside},
		{"/%zz", []string{"%zz"}, inside},
		{"/%ff", []string{"%ff"}, inside},
		{"/..a/...", []string{"..a", "..."}, inside},
		{"/..", nil, outside},
		{"/a/../..", nil, outside},
		{"/a%2f..", []string{"a/.."}, forged},
		{`/a\b`, []string{`a\b`}, forged},
		{"/a%00", []string{"a\x00"}, forged},
		{"/a%2fb/../..", nil, outside},
	} {
		got, where := resolve(c.path)
		if where != c.where || where != outside && !slices.Equal(got, c.want) {
			t.Errorf("%q: %q %d, want %q %d", c.path, got, where, c.want, c.where)
		}
	}
}

// deadlines records the write deadlines a handler sets.
type deadlines struct {
	http.ResponseWriter
	set []time.Time
}

// SetWriteDeadline implements what http.ResponseController looks for.
func (d *deadlines) SetWriteDeadline(t time.Time) error { d.set = append(d.set, t); return nil }

// A client that stops reading a file is cut: each write has its own deadline.
func TestWriteDeadline(t *testing.T) {
	d := &deadlines{ResponseWriter: httptest.NewRecorder()}
	p := &patient{d, http.NewResponseController(d)}
	before := time.Now()
	for range 2 {
		if n, err := p.Write([]byte("x")); n != 1 || err != nil {
			t.Fatalf("write: %d, %v", n, err)
		}
	}
	if len(d.set) != 2 || d.set[0].Before(before.Add(writeTimeout)) || d.set[1].Before(d.set[0]) {
		t.Errorf("deadlines %v after %v", d.set, before)
	}
}
