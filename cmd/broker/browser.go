package main

import (
	"fmt"
	"os/exec"
	"runtime"
	"time"
)

// launchPatience is how long a launcher may take to fail. One that still runs
// then is, or waits for, the browser itself.
const launchPatience = 10 * time.Second

// browse opens a page in the browser of the desktop.
func browse(page string) error {
	args := browserCommand(runtime.GOOS, page)
	cmd := exec.Command(args[0], args[1:]...)
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
	case <-time.After(launchPatience):
	}
	return nil
}

// browserCommand takes the page as one argument; no shell reads it.
func browserCommand(goos, page string) []string {
	switch goos {
	case "darwin":
		return []string{"open", page}
	case "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler", page}
	}
	return []string{"xdg-open", page}
}
