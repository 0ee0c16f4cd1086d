package persist

// openCalls are the calls that have lines in the journal and no last one. The journal's mu guards
// it. A value is the number of the file in which a line is that has all of the call so far, or of
// an earlier file.
type openCalls map[*Call]int64

// add notes that a line of c goes to the file of that number, or a later one.
func (o openCalls) add(c *Call, number int64) {
	if _, ok := o[c]; !ok {
		o[c] = number
	}
}

// over notes that nothing more is written of c.
func (j *Journal) over(c *Call) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.open, c)
}

// carry writes open calls anew whose lines are in the file of that number or in earlier ones, so
// that these can be removed: where the hub is killed later, EndKilled still finds those calls. It
// returns false where that is not possible now. Only the writer calls it.
func (j *Journal) carry(number int64) bool {
	b, calls, ok := j.openUpTo(number)
	if !ok || len(calls) == 0 {
		return ok
	}
	if j.files.current == nil {
		return false
	}
	standing, keys := j.files.standing(b)
	if _, err := j.files.put(b, standing, keys); err != nil {
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range calls {
		if _, open := j.open[c]; open {
			j.open[c] = j.files.number.Load()
		}
	}
	return true
}

// openUpTo returns the open calls of carry, and a batch with a line for each. ok is false while one
// of them is about to be written.
func (j *Journal) openUpTo(number int64) (b *batch, calls []*Call, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	b = &batch{}
	for c, in := range j.open {
		if in > number {
			continue
		}
		if !c.mu.TryLock() { // its owner may wait for this goroutine
			return nil, nil, false
		}
		line, err := c.appendSoFar(b.bytes)
		names := c.names
		c.mu.Unlock()
		if err != nil {
			continue // its last line cannot be written either
		}
		b.bytes, b.records, b.names = line, b.records+1, append(b.names, names...)
		calls = append(calls, c)
	}
	return b, calls, true
}

// appendSoFar adds a line with all that the journal has of the call in other lines. It is called with mu held.
func (c *Call) appendSoFar(dst []byte) ([]byte, error) {
	l := callRecord{Object: ObjectCall, Version: callVersion, CallHead: c.CallHead, Status: c.status,
		CallInput: c.Input,
		Mappings:  c.mappings, From: c.base, Steps: c.steps[:c.written-c.base]}
	l.Created = c.Created.UTC()
	out, err := appendJSON(dst, &l)
	if err != nil {
		return dst, err
	}
	return endLine(out, len(dst)), nil
}
