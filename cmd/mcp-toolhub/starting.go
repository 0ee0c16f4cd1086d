package main

import (
	"runtime/debug"
	"sync"
	"time"
)

// startQuiet passes without news from any server before the start counts as over.
const startQuiet = time.Second

// starting returns memory to the system once a hub has started. Configs, schemas and lists that were read are garbage by then,
// and the runtime would keep their pages until somebody calls. Its zero value does nothing. It is safe for concurrent use.
type starting struct {
	mu    sync.Mutex
	timer *time.Timer // nil: not begun, or over
}

// begin begins to wait for the end of the start.
func (s *starting) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(startQuiet, func() {
		s.end()
		debug.FreeOSMemory()
		forgetProgram()
	})
}

// more says that the start goes on.
func (s *starting) more() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Reset(startQuiet)
	}
}

// end ends the waiting.
func (s *starting) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
}
