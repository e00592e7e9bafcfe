package static_test

import (
	"os"
	"path/filepath"
	"testing"

	"mcpbroker"
	"mcpbroker/brokertest"
	"mcpbroker/config"
	"mcpbroker/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// tree writes files below a new directory; a name that ends with a slash is an
// empty directory.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if name[len(name)-1] == '/' {
			must(t, os.MkdirAll(path, 0o755))
			continue
		}
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(content), 0o644))
	}
	return dir
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// serving starts a broker with mounts, given as prefix and directory in turn.
func serving(t testing.TB, mounts ...string) *brokertest.Broker {
	t.Helper()
	var list []config.Mount
	for i := 0; i < len(mounts); i += 2 {
		list = append(list, config.Mount{URLPrefix: mounts[i], Dir: mounts[i+1]})
	}
	return brokertest.Start(t, brokertest.Options{Configure: []mcpbroker.Option{mcpbroker.WithMounts(list...)}})
}

// ask sends one request with the target as it is spelled.
func ask(t testing.TB, b *brokertest.Broker, method, target string, header ...string) brokertest.Answer {
	t.Helper()
	request := method + " " + target + " HTTP/1.1\r\nHost: " + b.Host() + "\r\nConnection: close\r\n"
	for _, line := range header {
		request += line + "\r\n"
	}
	return b.Exchange(t, request+"\r\n")
}
