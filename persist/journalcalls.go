package persist

import (
	"context"
	"fmt"
)

// Note writes what is new of a call that has not ended. It waits only while the queue is full, until
// ctx ends or the disk has not answered for 10 s. Lines that are lost later, because the disk fails,
// are counted in the log and make Healthy fail.
func (j *Journal) Note(ctx context.Context, c *Call) error {
	t, err := j.putCall(ctx, c, nil, false)
	if t.write {
		go j.write()
	}
	return err
}

// Announce is Note for a call that is about to run, and returns when the line is written, as Commit
// does: a call that has had an effect leaves a record, however its hub ends, and nothing runs whose
// end could not be recorded. At its limit the journal takes only calls that it has a line of.
func (j *Journal) Announce(ctx context.Context, c *Call) error {
	if full := j.full.Load(); full != nil && !c.IsOpen() {
		return full
	}
	t, err := j.putCall(ctx, c, nil, true)
	if t.batch == nil {
		return err
	}
	return j.wait(ctx, t)
}

// End commits the last line of a call, which nothing follows but the line of its task: that, where
// end.Task is set. It waits for a disk that hangs for 10 s. That ctx has ended does not matter. At
// its limit the journal does not take calls of which it has no line and that have not run.
func (j *Journal) End(ctx context.Context, c *Call, end *CallEnd) error {
	if full := j.full.Load(); full != nil && c.isNew() {
		return full
	}
	c.redact(end)
	ctx = context.WithoutCancel(ctx)
	t, err := j.putCall(ctx, c, end, true)
	if t.batch != nil {
		err = j.wait(ctx, t)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.open, c)
	return err
}

// putCall is put for what is new of a call; the ticket has no batch where nothing is.
func (j *Journal) putCall(ctx context.Context, c *Call, end *CallEnd, durable bool) (t ticket, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended && (end == nil || end.Task == "") || end == nil && c.written == c.base+len(c.steps) {
		return t, nil
	}
	lines, record, err := c.line(end)
	if err != nil {
		return t, fmt.Errorf("encode the record of %q: %w", c.Invocation, err)
	}
	e := entry{lines: lines, records: 1, names: c.names, line: record}
	if end == nil {
		e.open = c
	}
	if t, err = j.put(ctx, durable, e); err == nil {
		c.written = c.base + len(c.steps)
		if len(c.text) > stepBytes {
			c.steps, c.text, c.base = c.steps[:0], c.text[:0], c.written
		}
		if end != nil && !c.ended {
			c.ended, c.base, c.written = true, c.base+endNumbers, c.written+endNumbers
		}
	}
	return t, err
}
