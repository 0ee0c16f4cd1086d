package upstream

import "time"

// put queues a question of the server for whoever waits for the call.
func (c *laneCall) put(q *inquiry) {
	c.mu.Lock()
	c.asked = append(c.asked, q)
	c.mu.Unlock()
	c.signal()
}

// takeQuestions returns the questions that arrived since the last time. held says that at least one is open: the server
// may be waiting for its answer.
func (c *laneCall) takeQuestions() (asked []*inquiry, held bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked, c.asked = c.asked, nil
	return asked, c.held > 0
}

// hold counts open questions.
func (c *laneCall) hold(n int) {
	c.mu.Lock()
	c.held += n
	c.mu.Unlock()
	c.signal()
}

func (c *laneCall) isHeld() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held > 0
}

// isDone reports whether the answer has come.
func (c *laneCall) isDone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done != nil
}

// left is how long a call that began then may still go without a word from the server. While the server waits for a
// person's answer the idle time does not run.
func (l callLimits) left(held bool) time.Duration {
	all := l.most - time.Since(l.began)
	if held {
		return all
	}
	return min(l.idle, all)
}
