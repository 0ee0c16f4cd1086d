package secret

import (
	"context"
	"fmt"
	"log/slog"
)

// Handler returns a log handler that masks the secrets of each record and passes it to next.
func (m *Masker) Handler(next slog.Handler) slog.Handler {
	return logHandler{next, func(text string, _ int) string {
		text, _ = m.Text(text)
		return text
	}}
}

type logHandler struct {
	slog.Handler
	show func(text string, most int) string // text without secrets, at most so many bytes
}

// Handle implements slog.Handler.
func (l logHandler) Handle(ctx context.Context, r slog.Record) error {
	shown := slog.NewRecord(r.Time, r.Level, l.show(r.Message, MaxLine), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		shown.AddAttrs(l.attr(a))
		return true
	})
	return l.Handler.Handle(ctx, shown)
}

// attr masks the value of an attribute. What is neither a text nor a group is masked as it would be printed.
func (l logHandler) attr(a slog.Attr) slog.Attr {
	switch a.Value = a.Value.Resolve(); a.Value.Kind() {
	case slog.KindString, slog.KindAny:
		text := a.Value.String()
		if a.Value.Kind() == slog.KindAny {
			text = fmt.Sprint(a.Value.Any())
		}
		if secretMember(a.Key, text) {
			return slog.String(a.Key, New(nil).Mark(text))
		}
		if shown := l.show(text, MaxMessage); shown != text {
			return slog.String(a.Key, shown)
		}
	case slog.KindGroup:
		var inner []any
		for _, one := range a.Value.Group() {
			inner = append(inner, l.attr(one))
		}
		return slog.Group(a.Key, inner...)
	}
	return a
}

// WithAttrs implements slog.Handler.
func (l logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	masked := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		masked[i] = l.attr(a)
	}
	return logHandler{l.Handler.WithAttrs(masked), l.show}
}

// WithGroup implements slog.Handler.
func (l logHandler) WithGroup(name string) slog.Handler {
	return logHandler{l.Handler.WithGroup(name), l.show}
}
