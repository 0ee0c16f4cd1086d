//go:build e2e && !race

package cli

const underRace = false
