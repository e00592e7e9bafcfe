package rt

import (
	"runtime"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// throughput is how many messages one run handles before it goes to the end of
// the queue.
const throughput = 64

// dispatcher runs actors on a few workers whose stacks have already grown. An
// actor that wakes another one mostly finds it run next on the same worker: a
// call that passes three actors costs one goroutine switch, not three.
//
// Actors must not block. Where one takes long all the same, a watch notices that
// no run has been taken for a while and adds a worker.
type dispatcher struct {
	jobs  *jobs
	limit int // workers, unless the watch adds one

	mu      sync.Mutex
	queue   runQueue
	running int

	taken    uint64 // runs taken so far
	seen     uint64 // taken at the last look of the watch
	quiet    int    // looks in a row that found nothing to do
	watching bool
	watch    *time.Timer
	closed   bool
}

// The watch looks every stallAfter while actors run, and for quietLooks behind
// that. It is not armed per message: a timer that becomes the earliest one wakes
// the network poller, which costs a lone call more than its actors do.
const (
	stallAfter = 10 * time.Millisecond
	quietLooks = 100
)

// restingJobs is how many goroutines a quiet system keeps for the next job.
const restingJobs = 16

var _ actor.Dispatcher = (*dispatcher)(nil)

func newDispatcher(j *jobs) *dispatcher {
	return &dispatcher{jobs: j, limit: max(2, runtime.GOMAXPROCS(0))}
}

func (d *dispatcher) Throughput() int { return throughput }

// Schedule queues a run. A worker that is busy takes it when it has finished its
// own; another one is started only when runs pile up.
func (d *dispatcher) Schedule(run func()) {
	d.mu.Lock()
	d.queue.push(run)
	start := d.running < d.limit && (d.running == 0 || d.queue.n > d.running)
	if start {
		d.running++
	}
	if !d.watching && !d.closed { // a straggler after close does not arm it again
		d.startWatch()
	}
	d.mu.Unlock()
	if start {
		d.jobs.run(d.work)
	}
}

// startWatch arms the watch. mu is held.
func (d *dispatcher) startWatch() {
	d.watching, d.seen, d.quiet = true, d.taken, 0
	if d.watch == nil {
		d.watch = time.AfterFunc(stallAfter, d.look)
		return
	}
	d.watch.Reset(stallAfter)
}

// look adds a worker where runs wait and none has been taken since the last look.
func (d *dispatcher) look() {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return
	case d.taken != d.seen:
		d.seen, d.quiet = d.taken, 0
	case d.queue.n > 0:
		d.running++
		d.jobs.run(d.work)
	default:
		if d.quiet++; d.quiet >= quietLooks {
			d.watching = false
			d.jobs.rest(restingJobs)
			return
		}
	}
	d.watch.Reset(stallAfter)
}

// close stops the watch.
func (d *dispatcher) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	if d.watch != nil {
		d.watch.Stop()
	}
}

func (d *dispatcher) work() {
	finished := false
	defer func() {
		if !finished { // runtime.Goexit in an actor: this goroutine ends, its place is taken
			d.jobs.run(d.work)
		}
	}()
	for {
		run := d.next()
		if run == nil {
			finished = true
			return
		}
		run()
	}
}

// next takes a run, or gives the worker's place back under the same lock.
func (d *dispatcher) next() func() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.queue.n == 0 {
		d.running--
		return nil
	}
	d.taken++
	return d.queue.pop()
}

// runQueue is a growing ring. It is as long as there are actors with something
// to do, each at most once.
type runQueue struct {
	ring    []func()
	head, n int
}

func (q *runQueue) push(run func()) {
	if q.n == len(q.ring) {
		ring := make([]func(), max(64, 2*len(q.ring)))
		for i := range q.n {
			ring[i] = q.ring[(q.head+i)%len(q.ring)]
		}
		q.ring, q.head = ring, 0
	}
	q.ring[(q.head+q.n)%len(q.ring)] = run
	q.n++
}

func (q *runQueue) pop() func() {
	run := q.ring[q.head]
	q.ring[q.head] = nil
	q.head = (q.head + 1) % len(q.ring)
	q.n--
	return run
}
