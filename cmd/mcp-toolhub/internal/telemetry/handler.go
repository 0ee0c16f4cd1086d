package telemetry

import (
	"context"
	"log/slog"
	"slices"

	"go.opentelemetry.io/contrib/bridges/otelslog"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// Handler returns a handler that gives what it is told to next, and keeps or sends it. What it is
// told has no secrets any more. What a server or a hook has written can hold arguments and results
// of calls: that is neither kept nor sent, unless content is switched on.
func (t *Telemetry) Handler(next slog.Handler) slog.Handler {
	all := []slog.Handler{next, withoutWords{slog.NewJSONHandler(&t.lines,
		&slog.HandlerOptions{Level: slog.LevelInfo})}}
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

const (
	keyStream       = "stream" // of a line that a program has written: the message is that line
	messageOfServer = "the server wrote a line"
)

// isWord reports whether an attribute of the log holds what somebody else has written.
func isWord(key string) bool {
	return slices.Contains([]string{"cause", "begins", "message", "stderr", "problem", "panic"}, key)
}

// withoutWords leaves out what servers, hooks and tools have written.
type withoutWords struct{ slog.Handler }

func (w withoutWords) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		if isWord(a.Key) {
			return true
		}
		if a.Key == keyStream {
			out.Message = messageOfServer
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

// WithoutWords is a line of a log in JSON without what servers, hooks and tools have written.
// Another line stays as it is.
func WithoutWords(line string) string {
	if !rawjson.Valid([]byte(line)) || !rawjson.IsObject([]byte(line)) {
		return line
	}
	out, _, err := rawjson.DeleteFunc([]byte(line), func(m rawjson.Member) bool { return isWord(m.Name()) })
	if _, of := rawjson.Get(out, keyStream); of && err == nil {
		out, err = rawjson.Set(out, slog.MessageKey, rawjson.Quote(messageOfServer))
	}
	if err != nil {
		return ""
	}
	return string(out)
}
