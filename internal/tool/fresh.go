package tool

import "time"

// Freshness is what can be said of a list on 2026-07-28: until when a client may keep it, and whether for others, too. The
// zero value is that of a list of which nothing was said: it may not be kept.
type Freshness struct {
	Until  time.Time
	Public bool // "The response does not contain user-specific data"
}

// And is what can be said of two lists together: no more than of either.
func (f Freshness) And(o Freshness) Freshness {
	f.Public = f.Public && o.Public
	if o.Until.Before(f.Until) {
		f.Until = o.Until
	}
	return f
}
