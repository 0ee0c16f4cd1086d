//go:build race

package search_test

// raceEnabled says that the race detector slows everything down, so that times say nothing.
const raceEnabled = true
