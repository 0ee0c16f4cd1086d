package telemetry

import (
	"bytes"
	"sync"
)

// keptLines and keptBytes bound the lines of the log that are kept in memory.
const (
	keptLines = 500
	keptBytes = 256 << 10
)

// lines keeps the latest lines that were written to it.
type lines struct {
	mu    sync.Mutex
	kept  []string
	bytes int
}

// Write keeps a line, which ends with p.
func (l *lines) Write(p []byte) (int, error) {
	line := string(bytes.TrimSuffix(p[:min(len(p), keptBytes/8)], []byte("\n")))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = append(l.kept, line)
	l.bytes += len(line)
	for len(l.kept) > keptLines || l.bytes > keptBytes {
		l.bytes -= len(l.kept[0])
		l.kept[0] = ""
		l.kept = l.kept[1:]
	}
	return len(p), nil
}

func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string{}, l.kept...)
}
