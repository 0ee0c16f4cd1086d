//go:build e2e && !linux

package cli

import "os/exec"

// endWithParent is for Linux: elsewhere a process ends with its stdin, or not at all.
func endWithParent(*exec.Cmd) {}
