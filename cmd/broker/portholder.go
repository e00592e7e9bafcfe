package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// portHolder names the process that listens on a TCP port, as " (name, process
// 12)"; empty where the system does not tell. It tells on Linux, about processes
// of the same user.
func portHolder(port int) string {
	sockets := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		listeningSockets(table, port, sockets)
	}
	if len(sockets) == 0 {
		return ""
	}
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, file := range files {
		if link, err := os.Readlink(file); err == nil && sockets[link] {
			process := filepath.Dir(filepath.Dir(file))
			name, _ := os.ReadFile(filepath.Join(process, "comm"))
			return fmt.Sprintf(" (%s, process %s)", strings.TrimSpace(string(name)), filepath.Base(process))
		}
	}
	return ""
}

// listeningSockets adds the sockets that listen on a port, as the links to them
// read.
func listeningSockets(table string, port int, to map[string]bool) {
	const (
		localAddress, state, inode = 1, 3, 9 // columns
		listening                  = "0A"
	)
	f, err := os.Open(table)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	suffix := fmt.Sprintf(":%04X", port)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		columns := strings.Fields(lines.Text())
		if len(columns) > inode && columns[state] == listening && strings.HasSuffix(columns[localAddress], suffix) {
			to["socket:["+columns[inode]+"]"] = true
		}
	}
}
