package main_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// nodeDir holds the manifest, its lock file and the scripts of the Node peers.
const nodeDir = "testdata/node"

// nodeModules returns the node_modules directory of the Node peers.
var nodeModules = sync.OnceValues(func() (string, error) { return npmPackages(nodeDir, "node") })

// npmPackages installs the locked packages of a manifest once per lock file and
// returns their node_modules directory.
func npmPackages(source, prefix string) (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, name := range manifest {
		text, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return "", fmt.Errorf("read the Node manifest: %w", err)
		}
		sum.Write(text)
	}
	dir := filepath.Join(cache, fmt.Sprintf("%s-%x", prefix, sum.Sum(nil)[:6]))
	modules := filepath.Join(dir, "node_modules")
	if _, err := os.Stat(modules); err == nil {
		return modules, nil
	}
	return modules, installNode(source, cache, dir)
}

var manifest = []string{"package.json", "package-lock.json", ".npmrc"}

// installTimeout bounds the download of the Node packages.
const installTimeout = 5 * time.Minute

// installNode installs beside dir first: dir exists only when it is complete.
func installNode(source, cache, dir string) error {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return fmt.Errorf("make the cache directory: %w", err)
	}
	temp, err := os.MkdirTemp(cache, "node-*.tmp")
	if err != nil {
		return fmt.Errorf("make the cache directory: %w", err)
	}
	defer os.RemoveAll(temp)
	for _, name := range manifest {
		text, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return fmt.Errorf("read the Node manifest: %w", err)
		}
		if err := os.WriteFile(filepath.Join(temp, name), text, 0o644); err != nil {
			return fmt.Errorf("copy the Node manifest: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), installTimeout)
	defer cancel()
	install := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	install.Dir = temp
	install.WaitDelay = time.Second
	if out, err := install.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	if err := os.Rename(temp, dir); err != nil {
		if _, stat := os.Stat(dir); stat == nil {
			return nil // another run was faster
		}
		return fmt.Errorf("keep the Node packages: %w", err)
	}
	return nil
}

// nodePeer is a script of nodeDir. It writes one JSON object per line and ends
// when its standard input does.
type nodePeer struct {
	*process
	stdin  io.WriteCloser
	events chan event
}

// event is a line of a script; its member "event" tells what happened.
type event map[string]any

func startNode(t *testing.T, script string, args ...string) *nodePeer {
	t.Helper()
	node := requireTool(t, "node")
	requireTool(t, "npm")
	modules, err := nodeModules()
	if err != nil {
		t.Fatal(err)
	}
	p := &nodePeer{process: command(t, node, append([]string{script}, args...)...), events: make(chan event, 64)}
	// The SDK sends SIGTERM to a child that has not ended 2 s after its input.
	p.cmd.Env = append(p.cmd.Env, "GORACE=atexit_sleep_ms=0")
	if err := os.CopyFS(p.cmd.Dir, scripts{os.DirFS(nodeDir)}); err != nil {
		t.Fatalf("copy the Node scripts: %v", err)
	}
	if err := os.Symlink(modules, filepath.Join(p.cmd.Dir, "node_modules")); err != nil {
		t.Fatalf("link the Node packages: %v", err)
	}
	reader, writer := io.Pipe()
	p.cmd.Stdout = io.MultiWriter(p.stdout, writer)
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	p.start()
	go p.read(reader)
	go func() {
		<-p.exited
		_ = writer.Close()
	}()
	return p
}

// scripts leaves out installed packages somebody may have beside the scripts.
type scripts struct{ fs.FS }

func (s scripts) ReadDir(name string) ([]fs.DirEntry, error) {
	all, err := fs.ReadDir(s.FS, name)
	var kept []fs.DirEntry
	for _, e := range all {
		if e.Name() != "node_modules" {
			kept = append(kept, e)
		}
	}
	return kept, err
}

func (p *nodePeer) read(r io.Reader) {
	defer close(p.events)
	for lines := bufio.NewScanner(r); lines.Scan(); {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			e = event{"event": "junk", "line": lines.Text()}
		}
		p.events <- e
	}
}

// next returns the next line the script writes.
func (p *nodePeer) next() event {
	p.t.Helper()
	select {
	case e, ok := <-p.events:
		if !ok {
			p.t.Fatal("the Node script ended")
		}
		return e
	case <-time.After(patience):
		p.t.Fatal("the Node script is silent")
	}
	return nil
}

// expect compares the next lines of the script.
func (p *nodePeer) expect(want ...event) {
	p.t.Helper()
	for _, w := range want {
		if diff := cmp.Diff(w, p.next()); diff != "" {
			p.t.Fatalf("line of the Node script (-want +got):\n%s", diff)
		}
	}
}

// tell writes one line to the script.
func (p *nodePeer) tell(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.stdin, line+"\n"); err != nil {
		p.t.Fatalf("write to the Node script: %v", err)
	}
}

// The lock files name no registry: a clone installs from the one its user has
// configured.
func TestNodeLockNamesNoRegistry(t *testing.T) {
	for _, dir := range []string{nodeDir, serversDir} {
		lock, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(lock), `"resolved"`) {
			t.Errorf(`%s/package-lock.json has "resolved" members: npm must run with the .npmrc beside it`, dir)
		}
	}
}
