//go:build e2e && !race

package main

const underRace = false
