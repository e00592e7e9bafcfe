package rt

import "sync"

// Scratch lends slices for the effects of one step, so that an idle actor holds
// none.
type Scratch[T any] struct{ pool sync.Pool }

// Get returns an empty slice.
func (s *Scratch[T]) Get() []T {
	if kept, ok := s.pool.Get().(*[]T); ok {
		return (*kept)[:0]
	}
	return make([]T, 0, 16)
}

// Put takes a slice back whose elements nobody refers to any more.
func (s *Scratch[T]) Put(slice []T) {
	const keep = 256
	if cap(slice) <= keep {
		clear(slice)
		s.pool.Put(&slice)
	}
}
