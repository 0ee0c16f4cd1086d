//go:build !linux

package child

import "time"

// ProcessorTime is known on Linux only: elsewhere no more servers than StartParallel start at the same time.
func ProcessorTime() (used time.Duration, ok bool) { return 0, false }
