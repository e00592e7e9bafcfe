package rt

import "sync"

// jobs runs functions on goroutines that are kept for the next one. A fresh
// goroutine spends most of a short job copying its stack upwards.
type jobs struct {
	mu      sync.Mutex
	idle    []chan func()
	maxIdle int
	live    int // goroutines, idle and busy
	closed  bool
	drained chan struct{} // closed when closed is set and live is 0
}

func newJobs(maxIdle int) *jobs { return &jobs{maxIdle: maxIdle, drained: make(chan struct{})} }

// run starts fn on an idle goroutine, or on a new one. It never blocks. A straggler
// that comes after close is run as well; close does not wait for it.
func (j *jobs) run(fn func()) {
	j.mu.Lock()
	if n := len(j.idle); n > 0 {
		worker := j.idle[n-1]
		j.idle = j.idle[:n-1]
		j.mu.Unlock()
		worker <- fn
		return
	}
	j.live++
	j.mu.Unlock()
	go j.work(fn)
}

func (j *jobs) work(fn func()) {
	defer j.leave()
	self := make(chan func(), 1)
	for fn != nil {
		fn()
		if !j.park(self) {
			return
		}
		fn = <-self
	}
}

func (j *jobs) leave() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.live--
	j.settle()
}

// settle lets close return once there is nobody left to wait for. mu is held.
func (j *jobs) settle() {
	if !j.closed || j.live > 0 {
		return
	}
	select {
	case <-j.drained: // a straggler has ended
	default:
		close(j.drained)
	}
}

func (j *jobs) park(self chan func()) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed || len(j.idle) >= j.maxIdle {
		return false
	}
	j.idle = append(j.idle, self)
	return true
}

// rest lets all but keep idle goroutines go.
func (j *jobs) rest(keep int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.idle) > keep {
		last := len(j.idle) - 1
		j.idle[last] <- nil
		j.idle[last] = nil
		j.idle = j.idle[:last]
	}
}

// close lets the idle goroutines go and waits for the busy ones.
func (j *jobs) close() {
	j.mu.Lock()
	j.closed = true
	for _, worker := range j.idle {
		worker <- nil
	}
	j.idle = nil
	j.settle()
	j.mu.Unlock()
	<-j.drained
}
