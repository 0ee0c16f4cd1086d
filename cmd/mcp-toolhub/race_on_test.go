//go:build e2e && race

package main

// underRace says that the race detector makes everything several times slower.
const underRace = true
