package main

import (
	"context"
	"os"
)

// hangups: Windows has no SIGHUP. The config file is watched there as everywhere.
func hangups(context.Context) <-chan os.Signal { return nil }
