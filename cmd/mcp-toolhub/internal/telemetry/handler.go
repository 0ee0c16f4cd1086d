package telemetry

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/contrib/bridges/otelslog"
)

// Handler returns a handler that gives what it is told to next, and keeps or sends it. What it is told has no secrets any more. What a
// server or a hook has written can hold arguments and results of calls: that is neither kept nor sent, unless content is switched on.
func (t *Telemetry) Handler(next slog.Handler) slog.Handler {
	all := []slog.Handler{next, withoutWords{slog.NewJSONHandler(&t.lines, &slog.HandlerOptions{Level: slog.LevelInfo})}}
	if t.logs != nil {
		var sent slog.Handler = otelslog.NewHandler(scope, otelslog.WithLoggerProvider(t.logs))
		if !t.content {
			sent = withoutWords{sent}
		}
		all = append(all, levelled{sent, next})
	}
	return slog.NewMultiHandler(all...)
}

// levelled handles what another handler would.
type levelled struct {
	slog.Handler
	as slog.Handler
}

func (l levelled) Enabled(ctx context.Context, level slog.Level) bool {
	return l.as.Enabled(ctx, level)
}

func (l levelled) WithAttrs(attrs []slog.Attr) slog.Handler {
	return levelled{l.Handler.WithAttrs(attrs), l.as}
}

func (l levelled) WithGroup(name string) slog.Handler {
	return levelled{l.Handler.WithGroup(name), l.as}
}

// withoutWords leaves out what servers, hooks and tools have written.
type withoutWords struct{ slog.Handler }

func (w withoutWords) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "stream": // of a program: the message is its line
			out.Message = "the server wrote a line"
		case "cause", "begins", "message", "stderr", "problem", "panic":
			return true
		}
		out.AddAttrs(a)
		return true
	})
	return w.Handler.Handle(ctx, out)
}

func (w withoutWords) WithAttrs(attrs []slog.Attr) slog.Handler {
	return withoutWords{w.Handler.WithAttrs(attrs)}
}

func (w withoutWords) WithGroup(name string) slog.Handler {
	return withoutWords{w.Handler.WithGroup(name)}
}
