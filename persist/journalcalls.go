package persist

import (
	"context"
	"errors"
	"fmt"
)

// Note appends what is new of a call that has not ended, as Append does.
func (j *Journal) Note(ctx context.Context, c *Call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, err := j.putCall(ctx.Done(), c, nil, false)
	if t.write {
		go j.write()
	}
	return becauseOf(ctx, err)
}

// TryNote is Note for whoever must not wait, not even for room. It reports whether nothing is left to note; otherwise the caller
// tries again later.
func (j *Journal) TryNote(c *Call) bool {
	if !c.mu.TryLock() {
		return false
	}
	defer c.mu.Unlock()
	t, err := j.putCall(j.never, c, nil, false)
	if t.write {
		go j.write()
	}
	return err == nil
}

// Announce is Note for a call that is about to run. Where the journal has failed, it returns when the line is written, as
// Commit does: nothing runs whose end could not be recorded.
func (j *Journal) Announce(ctx context.Context, c *Call) error {
	if j.Healthy() == nil {
		return j.Note(ctx, c)
	}
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	c.mu.Lock()
	t, err := j.putCall(ctx.Done(), c, nil, true)
	c.mu.Unlock()
	if t.batch == nil {
		return becauseOf(ctx, err)
	}
	return j.wait(ctx.Done(), t, ctx.Err)
}

// End commits the last line of a call, which nothing follows. It waits for a disk that hangs for 10 s. That ctx has ended
// does not matter.
func (j *Journal) End(ctx context.Context, c *Call, end *CallEnd) error {
	c.mu.Lock()
	t, err := j.putCall(j.never, c, end, true)
	if errors.Is(err, errFull) { // only then is there something to wait for, with a timer
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
		t, err = j.putCall(limited.Done(), c, end, true)
		cancel()
	}
	c.mu.Unlock()
	if t.batch == nil {
		return err
	}
	return j.wait(nil, t, nil)
}

// putCall is put for what is new of a call; the ticket has no batch where nothing is. It is called with the call's mu held.
func (j *Journal) putCall(done <-chan struct{}, c *Call, end *CallEnd, durable bool) (t ticket, err error) {
	if c.ended || end == nil && c.written == c.count {
		return t, nil
	}
	buffer := j.lines.Get().(*[]byte)
	lines, err := c.line((*buffer)[:0], end)
	defer func() { j.giveBack(buffer, lines) }()
	if err != nil {
		return t, fmt.Errorf("encode the record of %q: %w", c.Invocation, err)
	}
	if t, err = j.put(done, durable, lines, 1); err == nil {
		c.wrote()
		c.ended = end != nil
	}
	return t, err
}
