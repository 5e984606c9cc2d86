package secrets

import "sync"

// maxAtOnce is how many bytes of texts are looked through at once. A longer text waits
// until it is alone.
const maxAtOnce = 32 << 20

// room bounds what is looked through at once. It is made by newRoom.
type room struct {
	mu   sync.Mutex
	left *sync.Cond
	free int
}

func newRoom() *room {
	r := &room{free: maxAtOnce}
	r.left = sync.NewCond(&r.mu)
	return r
}

// enter waits until there is room for size bytes, and takes it until leave is called.
func (r *room) enter(size int) (leave func()) {
	size = min(size, maxAtOnce)
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.free < size {
		r.left.Wait()
	}
	r.free -= size
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.free += size
		r.left.Broadcast()
	}
}
