//go:build !linux

package guard

// Conceal does nothing: only Linux lets a process hide its memory and environment from the user's other processes.
func Conceal() error { return nil }
