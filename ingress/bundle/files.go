package bundle

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

var (
	errNotRegular = errors.New("it is not a regular file")
	errTooLarge   = errors.New("too large")
)

// readFile reads a regular file of at most limit bytes. A pipe or device would let
// the reader wait for ever.
func readFile(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > limit {
		return nil, errTooLarge
	}
	text := make([]byte, 0, info.Size()+1)
	for {
		n, err := f.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		if int64(len(text)) > limit {
			return nil, errTooLarge
		}
		if err == io.EOF {
			return text, nil
		}
		if err != nil {
			return nil, err
		}
		if len(text) == cap(text) {
			text = append(text, 0)[:len(text)]
		}
	}
}

// readBundle reads the bundle, the one time that it is read.
func readBundle(path string, limit int64) ([]byte, error) {
	return read("bundle", path, limit)
}

// read calls the file by what it is in the words of spec 03 4.3.
func read(what, path string, limit int64) ([]byte, error) {
	text, err := readFile(path, limit)
	switch {
	case err == nil:
		return text, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, refusal(ErrNotFound, "%s file not found at %s", what, path).causedBy(err)
	case errors.Is(err, errTooLarge):
		return nil, refusal(ErrLimit, "%s file at %s is larger than %d bytes", what, path, limit)
	}
	return nil, because(ErrUnreadable, err, "%s file at %s cannot be read", what, path)
}

// replaceFile writes a file so that nobody ever sees half of it.
func replaceFile(path string, text []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already when all went well
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(mode), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
