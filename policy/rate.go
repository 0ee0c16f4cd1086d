package policy

import "time"

// Rate bounds how often tools are called: Calls within Every, and so many at once where nobody has
// called for that time. The pipeline keeps count.
type Rate struct {
	Match string        // glob over canonical names; "" matches all
	Actor string        // glob over names of callers; "" matches all
	Calls int           // at least 1
	Every time.Duration // more than 0

	// What has a count of its own. Where all are false, there is one for all calls that match.
	PerActor, PerTool, PerServer bool
}
