// Package wait signals and waits on channels, in a way that does not depend on how busy the machine is.
package wait

import "time"

// For waits until c is closed, for at most d or until stop, which may be nil, is closed. It reports
// whether c is closed.
//
// It waits in steps. If the machine stands still for a while, that counts as one of them, and time is left for what c
// waits for.
func For(stop, c <-chan struct{}, d time.Duration) bool {
	const steps = 4
	for range steps {
		select {
		case <-c:
		case <-time.After(d / steps):
			continue
		case <-stop:
		}
		break
	}
	return IsClosed(c) // also where stop or the time was chosen
}

// IsClosed reports whether c, on which nothing is sent, is closed.
func IsClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Signal sends to c, which has room for one, unless a signal is there already.
func Signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
