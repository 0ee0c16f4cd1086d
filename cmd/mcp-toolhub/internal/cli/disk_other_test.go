//go:build e2e && !linux

package cli

// mountSmallDisk is for Linux: elsewhere a test has no disk that it could fill.
func mountSmallDisk() {}
