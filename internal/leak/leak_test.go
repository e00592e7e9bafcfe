package leak

import (
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) { Main(m) }

// A goroutine that ends late is none that was left behind; one that stays is named.
func TestFind(t *testing.T) {
	release, ended := make(chan struct{}), make(chan struct{})
	go func() { forgotten(release); close(ended) }()
	if err := find(0); err == nil || !strings.Contains(err.Error(), "forgotten") {
		t.Errorf("with a goroutine left behind: %v", err)
	}
	time.AfterFunc(time.Second, func() { close(release) })
	if err := find(patience); err != nil {
		t.Errorf("with one that ends after a second: %v", err)
	}
	<-ended
}

func forgotten(release <-chan struct{}) { <-release }
