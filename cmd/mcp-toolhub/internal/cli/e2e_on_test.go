//go:build e2e

package cli

import "testing"

// e2e reports that the tests run that start many processes, wait, measure, kill or fill memory.
const e2e = true

// e2eMain lets the test binary be a process of a benchmark. It reports whether it was one.
func e2eMain() bool { return benchMain() }

// e2ePrograms are further programs that the test binary can be.
func e2ePrograms() map[string]func() {
	return map[string]func(){
		"legacy-pipe":        legacyPipe,
		"conformance-driver": conformanceDriver,
		"flooding-client":    floodingClient,
	}
}

// e2eHub runs in the process of a hub before the hub does.
func e2eHub() {
	mountSmallDisk()
	serveProbe()
}

// TestMoreScripts runs testdata/scripts/e2e: further sessions of the real program.
func TestMoreScripts(t *testing.T) {
	t.Parallel()
	runScripts(t, "e2e")
}
