package guestlog

// ring holds the last lines of one module. It grows with them up to its bounds,
// and overwrites the oldest.
type ring struct {
	lines []Line // the oldest at first, then around the end
	first int
	count int
	bytes int
	last  int64 // when a line was added, by the log's clock
}

// overhead is what a line takes besides its texts, in bytes, more or less.
const overhead = 100

func size(l Line) int { return len(l.Text) + len(l.Tool) + len(l.CallID) + overhead }

func (r *ring) add(l Line, mostLines, mostBytes int) {
	for r.count > 0 && (r.count >= mostLines || r.bytes+size(l) > mostBytes) {
		r.drop()
	}
	if r.count == len(r.lines) {
		r.grow(mostLines)
	}
	r.lines[(r.first+r.count)%len(r.lines)] = l
	r.count++
	r.bytes += size(l)
}

func (r *ring) drop() {
	r.bytes -= size(r.lines[r.first])
	r.lines[r.first] = Line{} // lets its text go
	r.first = (r.first + 1) % len(r.lines)
	r.count--
}

func (r *ring) grow(most int) {
	lines := make([]Line, min(max(8, 2*len(r.lines)), max(most, 1)))
	copy(lines, r.tail(r.count))
	r.lines, r.first = lines, 0
}

func (r *ring) tail(n int) []Line {
	n = min(max(n, 0), r.count)
	lines := make([]Line, 0, n)
	for i := r.count - n; i < r.count; i++ {
		lines = append(lines, r.lines[(r.first+i)%len(r.lines)])
	}
	return lines
}
