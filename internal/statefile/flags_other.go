//go:build !unix

package statefile

// noFollow is nothing here: there is no such flag.
const noFollow = 0
