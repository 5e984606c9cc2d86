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
