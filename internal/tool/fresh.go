package tool

import "time"

// Freshness says until when a client of 2026-07-28 may keep a list, and whether it may serve it to
// others. The zero value says that it may not keep it.
type Freshness struct {
	Until  time.Time
	Public bool // "The response does not contain user-specific data"
}

// And returns what holds for two lists together.
func (f Freshness) And(o Freshness) Freshness {
	f.Public = f.Public && o.Public
	if o.Until.Before(f.Until) {
		f.Until = o.Until
	}
	return f
}
