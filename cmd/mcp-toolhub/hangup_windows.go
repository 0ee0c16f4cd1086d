package main

import "context"

// hangups: Windows has no SIGHUP. The config file is watched there as everywhere.
func hangups(context.Context) <-chan struct{} { return nil }
