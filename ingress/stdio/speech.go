package stdio

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"mcpbroker/actors/msg"
	"mcpbroker/internal/mask"
)

// Bounds of what a child writes beside its messages.
const (
	maxTail      = 50  // lines that are remembered
	maxQuoted    = 3   // of stderr, when it ends
	maxLineBytes = 500 // of one line
	maxSpoken    = 100 // lines that are passed on within a period
	period       = time.Second
)

// speech passes on what a child writes to stderr, to the log and to the actor of
// its upstream, and to the latter what it writes to stdout that is no message. Of a flood the log has the first lines of each second and a count,
// the actor the first and the last ones.
type speech struct {
	name  string
	log   *slog.Logger
	owner msg.Ref
	gen   uint64
	mask  *mask.Mask

	mu     sync.Mutex
	tail   []string
	last   []string  // the end of stderr
	since  time.Time // the present period began
	spoken int       // in it
	left   int       // lines left out of the log, not yet reported
	held   []string  // the last of them
	timer  *time.Timer
}

// read reads stderr to its end. Nothing makes it wait: a child that cannot log
// does not work.
func (s *speech) read(stderr io.Reader) {
	room := s.mask.Window(maxLineBytes)
	r := bufio.NewReaderSize(stderr, 4<<10)
	var line []byte
	cut := false
	for {
		piece, err := r.ReadSlice('\n')
		kept := min(len(piece), room-len(line))
		line, cut = append(line, piece[:kept]...), cut || kept < len(piece)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if text := s.clean(line, cut); text != "" {
			s.say(text)
		}
		if err != nil {
			return
		}
		line, cut = line[:0], false
	}
}

// clean is a line, or when cut its beginning, as it may be shown.
func (s *speech) clean(line []byte, cut bool) string {
	return s.mask.Text(legible([]byte(s.mask.Shown(line, cut)))) // made legible it may be a secret
}

// say passes a line of stderr on.
func (s *speech) say(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = remember(s.last, line, maxQuoted)
	if s.pass(line, false) {
		s.log.Info(fmt.Sprintf("[%s] %s", s.name, line))
	}
}

// stray passes on a line of stdout that is no message. The slot logs the first one.
func (s *speech) stray(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pass("stdout: "+line, true)
}

// pass tells whether there is room for a line in this second. mu is held.
func (s *speech) pass(line string, stray bool) bool {
	now := time.Now()
	if now.Sub(s.since) >= period {
		s.report()
		s.since, s.spoken = now, 0
	}
	s.tail = remember(s.tail, line, maxTail)
	if s.spoken < maxSpoken {
		s.spoken++
		s.owner.Send(&msg.UpstreamSaid{Gen: s.gen, Line: line, Stray: stray})
		return true
	}
	if s.left == 0 {
		s.timer = time.AfterFunc(period-now.Sub(s.since), s.end)
	}
	s.left++
	s.held = remember(s.held, line, maxTail)
	return false
}

// end reports what was left out so far.
func (s *speech) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report()
}

// report says how much was left out. mu is held.
func (s *speech) report() {
	if s.left == 0 {
		return
	}
	s.timer.Stop()
	s.log.Info(fmt.Sprintf("[%s] ... %d more lines within one second are not shown", s.name, s.left))
	for _, line := range s.held {
		s.owner.Send(&msg.UpstreamSaid{Gen: s.gen, Line: line})
	}
	s.left, s.held = 0, nil
}

// lines returns the last lines, oldest first.
func (s *speech) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.tail)
}

// lastWords returns the last lines of stderr, oldest first.
func (s *speech) lastWords() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.last)
}

func remember(lines []string, line string, most int) []string {
	if len(lines) >= most {
		lines = slices.Delete(lines, 0, len(lines)-most+1)
	}
	return append(lines, line)
}

// legible is a line as it may be shown on a terminal: bounded, without control
// characters and escape sequences, and valid. Format characters, which can make a
// line read otherwise than it stands, are shown as their numbers.
func legible(line []byte) string {
	var text strings.Builder
	for i := 0; i < len(line) && utf8.FullRune(line[i:]); {
		if n := escapeLength(line[i:]); n > 0 {
			i += n
			continue
		}
		r, size := utf8.DecodeRune(line[i:])
		if r == '\t' {
			r = ' '
		}
		shown := string(r)
		switch {
		case unicode.IsControl(r):
			shown = ""
		case unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp):
			shown = strings.Trim(strconv.QuoteRuneToASCII(r), "'")
		}
		if text.Len()+len(shown) > maxLineBytes {
			break
		}
		text.WriteString(shown)
		i += size
	}
	return strings.TrimRight(text.String(), " ")
}

// escapeLength is how long the terminal control sequence at the start of b is, 0
// when there is none.
func escapeLength(b []byte) int {
	if len(b) < 2 || b[0] != 0x1B || b[1] != '[' {
		return 0
	}
	for i := 2; i < len(b); i++ {
		if b[i] >= 0x40 && b[i] <= 0x7E {
			return i + 1
		}
	}
	return len(b)
}
