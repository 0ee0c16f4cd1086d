// Package parallel does the same to many things on all processors.
package parallel

import (
	"runtime"
	"sync"
)

// least is the number of things that are worth a goroutine.
const least = 200

// Do calls f for each number below n, in no order, and returns when all calls have. Few are called one after another.
func Do(n int, f func(i int)) { do(n, n/least, f) }

// Each is Do for things of which each is worth a goroutine.
func Each(n int, f func(i int)) { do(n, n, f) }

// do is Do with so many goroutines at most.
func do(n, most int, f func(i int)) {
	workers := max(min(runtime.GOMAXPROCS(0), most), 1)
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
