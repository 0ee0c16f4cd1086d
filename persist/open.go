package persist

// fileSpan are the numbers of the first and the last file that may have lines of a call.
type fileSpan struct{ first, last int64 }

// isOpen reports whether the file of that number may have lines of a call that is open: EndKilled
// has to find them if the hub is killed later.
func (j *Journal) isOpen(number int64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range j.open {
		if s.first <= number && number <= s.last {
			return true
		}
	}
	return false
}
