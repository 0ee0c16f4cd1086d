//go:build !linux

package upstream

import "time"

// processorTime is known on Linux only: elsewhere no more servers than StartParallel start at the same time.
func processorTime() (used time.Duration, ok bool) { return 0, false }
