package child

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// ProcessorTime returns how long all processors of the machine have worked since it was started. ok is false where that
// cannot be known.
func ProcessorTime() (used time.Duration, ok bool) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, false
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	fields := bytes.Fields(line)
	if len(fields) < 9 || string(fields[0]) != "cpu" {
		return 0, false
	}
	for i, field := range fields[1:9] { // user nice system idle iowait irq softirq steal
		const idle, iowait = 3, 4
		ticks, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, false
		}
		if i != idle && i != iowait {
			used += time.Duration(ticks) * time.Second / 100 // USER_HZ is 100 on every Linux that Go runs on
		}
	}
	return used, true
}
