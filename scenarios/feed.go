package scenarios

import (
	"context"
	"sync"
)

// feed is a list that grows from other goroutines and that a script waits on.
// The zero feed is empty.
type feed[T any] struct {
	mu      sync.Mutex
	items   []T
	taken   int
	changed chan struct{} // closed and forgotten by the next add
}

func (f *feed[T]) add(item T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.items = append(f.items, item)
	f.wake()
}

// take removes the first item not taken yet, waiting for one.
func (f *feed[T]) take(ctx context.Context) (item T, err error) {
	err = f.wait(ctx, func() bool {
		if f.taken == len(f.items) {
			return false
		}
		item = f.items[f.taken]
		f.taken++
		return true
	})
	return item, err
}

// find returns the first item from index from on that matches, waiting for one.
func (f *feed[T]) find(ctx context.Context, from int, match func(T) bool) (found T, err error) {
	err = f.wait(ctx, func() bool {
		for ; from < len(f.items); from++ {
			if match(f.items[from]) {
				found = f.items[from]
				return true
			}
		}
		return false
	})
	return found, err
}

// wait returns when done, which is called with the lock held, reports true.
func (f *feed[T]) wait(ctx context.Context, done func() bool) error {
	for {
		f.mu.Lock()
		if done() {
			f.mu.Unlock()
			return nil
		}
		if f.changed == nil {
			f.changed = make(chan struct{})
		}
		changed := f.changed
		f.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// nudge makes waiters look again: something beside the list has changed.
func (f *feed[T]) nudge() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wake()
}

func (f *feed[T]) wake() {
	if f.changed != nil {
		close(f.changed)
		f.changed = nil
	}
}

func (f *feed[T]) len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.items)
}

// from returns a copy of the items from index i on.
func (f *feed[T]) from(i int) []T {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]T(nil), f.items[min(i, len(f.items)):]...)
}

// last is the newest item, the zero T when there is none.
func (f *feed[T]) last() (item T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.items); n > 0 {
		item = f.items[n-1]
	}
	return item
}
