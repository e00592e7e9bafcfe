package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
)

// TLS names the PEM files of the listener. After [Load], relative names from a
// file are joined to that file's directory (spec 03 5.2).
type TLS struct {
	Cert string `toml:"cert" json:"cert,omitempty"`
	Key  string `toml:"key" json:"key,omitempty"`
}

// MaxPEMBytes bounds a file of certificates or of a key.
const MaxPEMBytes = 1 << 20

// Pair reads certificate and key. A file that cannot be read is an [*fs.PathError];
// other errors are of what is in them.
func (t TLS) Pair() (tls.Certificate, error) {
	cert, err := readPEM(t.Cert)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := readPEM(t.Key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, key)
}

func readPEM(path string) ([]byte, error) {
	data, err := ReadRegular(path, MaxPEMBytes)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return data, nil
}

// unreadable is what is wrong with the files a listener with TLS needs.
func (c *Config) unreadable() []conflict {
	if c.Scheme() != ProtocolHTTPS || c.TLS.Cert == "" || c.TLS.Key == "" {
		return nil
	}
	var found []conflict
	for _, file := range []struct{ name, path string }{{"tls.cert", c.TLS.Cert}, {"tls.key", c.TLS.Key}} {
		if _, err := ReadRegular(file.path, MaxPEMBytes); err != nil {
			found = append(found, conflict{[]string{file.name}, fmt.Errorf("cannot be read: %s: %w", file.path, err)})
		}
	}
	var unread *fs.PathError
	if _, err := c.TLS.Pair(); err != nil && !errors.As(err, &unread) {
		found = append(found, conflict{[]string{"tls.cert", "tls.key"}, fmt.Errorf(`and "tls.key" do not go together: %w`, err)})
	}
	return found
}
