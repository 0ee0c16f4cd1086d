//go:build unix

package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// hangups delivers SIGHUP, by which service managers ask for a reload, until ctx ends. On a terminal it means that the
// terminal is gone, and ends the hub.
func hangups(ctx context.Context) <-chan struct{} {
	if isTerminal(os.Stderr) {
		return nil
	}
	signals, out := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGHUP)
	go func() {
		defer signal.Stop(signals)
		for {
			select {
			case <-signals:
				select {
				case out <- struct{}{}:
				case <-ctx.Done():
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}
