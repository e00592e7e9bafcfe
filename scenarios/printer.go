package scenarios

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// printer interleaves narration, the broker's log and what the peers see, each
// with its own mark after the elapsed seconds.
type printer struct {
	mu    sync.Mutex
	w     io.Writer
	start time.Time
	took  time.Duration // set by stop
}

func newPrinter(w io.Writer) *printer { return &printer{w: w, start: time.Now()} }

func (p *printer) elapsed() float64 { return time.Since(p.start).Seconds() }

// heading begins a scenario.
func (p *printer) heading(format string, args ...any) { p.print("%s\n", fmt.Sprintf(format, args...)) }

// narrate tells what step n is about.
func (p *printer) narrate(n int, text string) { p.print("%5.1f  %2d. %s\n", p.elapsed(), n, text) }

// log shows a line of the broker's log, verbatim.
func (p *printer) log(line string) { p.print("%5.1f      | %s\n", p.elapsed(), line) }

// event shows what a peer saw.
func (p *printer) event(text string) { p.print("%5.1f      * %s\n", p.elapsed(), text) }

// stop ends the clock and drops everything but verdicts from here on: what
// follows is the runner tidying up.
func (p *printer) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.took = max(time.Since(p.start), 1)
}

// verdict ends a scenario.
func (p *printer) verdict(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.w, format+"\n", args...)
}

func (p *printer) print(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.took == 0 {
		fmt.Fprintf(p.w, format, args...)
	}
}
