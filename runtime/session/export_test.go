package session

// Live is how many threads are in memory, and about how many bytes of idle ones.
func (k *Keeper) Live() (threads int, idleBytes int64) {
	k.cmu.Lock()
	defer k.cmu.Unlock()
	return len(k.threads), k.idleBytes
}

// Debts is how many runs are owed an end.
func (k *Keeper) Debts() int {
	k.cmu.Lock()
	defer k.cmu.Unlock()
	return k.owing
}

// StreamOf is a stream of a run that waits for its turn.
func (k *Keeper) StreamOf(ref Ref, run string) *Stream {
	k.smu.Lock()
	k.byID[runKey{ref, run}] = &Run{rec: Record{ID: run, Status: Queued}}
	k.smu.Unlock()
	th := k.hold(ref)
	defer k.release(th)
	return newStream(th, run, 0)
}

// TurnTo makes it that of one which came to an end meanwhile, as the run does when its turn
// comes.
func (s *Stream) TurnTo(old Record) {
	k := s.th.k
	k.smu.Lock()
	delete(k.byID, runKey{s.th.ref, s.run})
	k.smu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.old = &old
	s.signal()
}
