//go:build e2e && race

package cli

// underRace says that the race detector makes everything several times slower.
const underRace = true
