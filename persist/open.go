package persist

// openCalls are the calls that have lines in the journal and no last one. The journal's mu guards
// it.
type openCalls map[*Call]fileSpan

// fileSpan are the numbers of the first and the last file that may have lines of a call.
type fileSpan struct{ first, last int64 }

// add notes that a line of c goes to the file of that number, or to the next one.
func (o openCalls) add(c *Call, number int64) {
	s, ok := o[c]
	if !ok {
		s.first = number
	}
	s.last = number + 1
	o[c] = s
}

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
