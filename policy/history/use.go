package history

import "time"

// Use is how often something decided about calls, and when it did so last.
type Use struct {
	Calls int
	Last  time.Time
}

// Uses counts the calls that each rule and grant decided about, alone or with others: by its name
// in records, source/id or grant/ID. Calls are in the order in which they came.
func Uses(calls []Call) map[string]Use {
	all := make(map[string]Use)
	for i := range calls {
		for _, ref := range calls[i].Refs {
			all[ref] = Use{all[ref].Calls + 1, calls[i].At}
		}
	}
	return all
}
