package cli

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/lmittmann/tint"
	"golang.org/x/term"
)

// newLogger returns the program's logger on stderr, without secrets: readable on a terminal, JSON
// lines otherwise, as format says. What it says passes through the handlers that through makes.
func newLogger(a *app, level, format string, through ...func(slog.Handler) slog.Handler) (*slog.Logger, error) {
	std := a.std
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "": slog.LevelInfo, "info": slog.LevelInfo,
		"warn": slog.LevelWarn, "error": slog.LevelError}
	l, ok := levels[strings.ToLower(level)]
	if !ok {
		return nil, fmt.Errorf("log level %q is not known: use debug, info, warn or error", level)
	}
	switch format {
	case "", "auto":
		if !isTerminal(std.err) {
			format = "json"
		}
	case "text", "json":
	default:
		return nil, fmt.Errorf("log format %q is not known: use auto, text or json", format)
	}
	var h slog.Handler = slog.NewJSONHandler(std.err, &slog.HandlerOptions{Level: l})
	if format != "json" {
		h = tint.NewTextHandler(std.err, &tint.Options{Level: l, TimeFormat: time.TimeOnly,
			NoColor: !std.isColoured(std.err)})
	}
	for _, make := range through {
		h = make(h)
	}
	return slog.New(a.known.Masker(nil).Handler(h)), nil
}

// isTerminal reports whether a stream of the process is one that a person sits at.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
