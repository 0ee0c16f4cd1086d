//go:build e2e && race

package search_test

// underRace says that the race detector slows everything down, so that times say nothing.
const underRace = true
