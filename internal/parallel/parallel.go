// Package parallel does the same to many things on all processors.
package parallel

import (
	"runtime"
	"sync"
)

// Few is the number of small things that are worth a goroutine.
const Few = 200

// Do calls f for each number below n, in no order, and returns when all calls have. least of them
// are worth a goroutine.
func Do(n, least int, f func(i int)) {
	workers := max(min(runtime.GOMAXPROCS(0), n/least), 1)
	part := func(w int) {
		for i := n * w / workers; i < n*(w+1)/workers; i++ {
			f(i)
		}
	}
	var others sync.WaitGroup
	for w := 1; w < workers; w++ {
		others.Go(func() { part(w) })
	}
	part(0)
	others.Wait()
}
