// Package redact makes the texts of one server fit to be shown: without the secrets of its entry, without control
// characters, and short. It decides nothing about errors and writes no log itself.
package redact

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/settings"
)

// Bounds of what is shown, in bytes.
const (
	MaxText    = 400     // a foreign text in an error, a hint or a log record
	MaxMessage = 2000    // what the hub says of a failed call, a foreign text in it included
	MaxLine    = 4 << 10 // the message of a log record, such as a line of stderr

	maxScanned = 16 << 10 // the beginning of a longer foreign text is enough
	minPart    = 4        // a shorter beginning of a secret is not taken for one
)

// Redactor makes the texts of one server fit for logs, health, records and messages to people. It
// takes out the secrets of the server's entry in every spelling that secretsOf knows, credentials
// inside URLs, and terminal sequences; and it shortens. Every text of a server passes through it,
// apart from the results of calls.
type Redactor struct {
	secrets *strings.Replacer
	known   []string // the texts that secrets replaces, longest first

	Live func() []string // further secrets, which change; nil for none
}

// New returns a Redactor for the secrets in cfg.
func New(cfg settings.Server) *Redactor {
	r := &Redactor{known: secretsOf(cfg)}
	var pairs []string
	for _, secret := range r.known {
		pairs = append(pairs, secret, "***")
	}
	r.secrets = strings.NewReplacer(pairs...)
	return r
}

// Text returns s without secrets, control characters and terminal sequences, on one line, cut to MaxText bytes.
func (r *Redactor) Text(s string) string { return r.Beginning(s, MaxText) }

// Beginning is Text, cut to n bytes.
func (r *Redactor) Beginning(s string, n int) string {
	whole := len(s) <= maxScanned
	if !whole {
		s = s[:maxScanned]
	}
	return r.Show(s, whole, n)
}

// Show returns s as Text does, cut to n bytes. Unless s is whole, it is the beginning of a longer
// text, and may end with a part of a secret, which is left out.
func (r *Redactor) Show(s string, whole bool, n int) string {
	s = Clean(s) // first: a character that is left out must not divide a secret
	s = r.Secrets(urlCredentials.ReplaceAllString(s, "$1$2"))
	for _, mark := range []string{"...", "…", `\u2026`} { // the server may have cut the text itself
		for at := strings.Index(s, mark); at >= 0 && at < len(s); {
			kept := r.withoutPart(s[:at])
			s = kept + s[at:]
			next := len(kept) + len(mark)
			at = next + strings.Index(s[next:]+mark, mark)
		}
	}
	if !whole {
		s = r.withoutPart(s) + "…"
	}
	return Truncate(s, n)
}

// withoutPart returns s without the beginning of a secret at its end.
func (r *Redactor) withoutPart(s string) string {
	end := len(s)
	for _, secret := range r.known {
		for n := min(len(secret)-1, len(s)); n >= minPart; n-- {
			if strings.HasSuffix(s, secret[:n]) {
				end = min(end, len(s)-n)
				break
			}
		}
	}
	return s[:end]
}

// Error returns err with a text that may be logged and shown. The members of a server's own error
// object stay as they are, for the client.
func (r *Redactor) Error(err error) error {
	if err == nil {
		return nil
	}
	var rpc *tool.RPCError
	var refused *tool.HTTPError
	var f *tool.Failure
	switch {
	case errors.As(err, &f):
		safe := *f
		safe.Message = r.Beginning(f.Message, MaxMessage)
		if f.Cause != nil {
			safe.Cause = &shownError{text: r.Text(f.Cause.Error()), cause: r.Error(f.Cause)}
		}
		return &safe
	case errors.As(err, &rpc):
		safe := *rpc
		safe.Shown, safe.ShownRaw = r.Text(rpc.Message), r.JSON(rpc.Raw)
		return &safe
	case errors.As(err, &refused):
		return &tool.HTTPError{Status: refused.Status, Media: r.Text(refused.Media),
			Body: r.Beginning(refused.Body, maxKeptBody)}
	}
	return err
}

// maxKeptBody bounds the bytes that records keep of a refusal.
const maxKeptBody = 4 << 10

// shownError is an error whose text was redacted.
type shownError struct {
	text  string
	cause error
}

func (e *shownError) Error() string { return e.text }

func (e *shownError) Unwrap() error { return e.cause }

// urlCredentials matches the parts of a URL that may hold credentials: user information and query.
var urlCredentials = regexp.MustCompile(`(https?://)(?:[^\s/@"']*@)?([^\s?"'<>]*)(?:\?[^\s"'<>]*)?`)

// URL returns raw without user information, query and fragment.
func URL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "(malformed URL)"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}

// ansi matches terminal control sequences: CSI, OSC, and two-byte escapes.
var ansi = regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[@-Z\\\\-_])")

// Clean returns s without terminal sequences and without control, formatting and invalid characters.
func Clean(s string) string {
	if strings.IndexByte(s, 0x1b) >= 0 {
		s = ansi.ReplaceAllString(s, "")
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n' || r == '\r':
			return ' '
		case r == utf8.RuneError || unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, s)
	return strings.TrimSpace(s)
}

// Truncate cuts s to at most n bytes at a character's boundary, and marks the cut.
func Truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// Handler returns a log handler that redacts each record and passes it to next.
func (r *Redactor) Handler(next slog.Handler) slog.Handler { return logHandler{next, r} }

type logHandler struct {
	slog.Handler
	redact *Redactor
}

// Handle implements slog.Handler.
func (l logHandler) Handle(ctx context.Context, r slog.Record) error {
	shown := slog.NewRecord(r.Time, r.Level, l.redact.Beginning(r.Message, MaxLine), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		if a.Value.Kind() == slog.KindString || a.Value.Kind() == slog.KindAny {
			a = slog.String(a.Key, l.redact.Beginning(a.Value.String(), MaxMessage))
		}
		shown.AddAttrs(a)
		return true
	})
	return l.Handler.Handle(ctx, shown)
}

// WithAttrs implements slog.Handler. The hub sets attrs itself, to name the server and the session.
func (l logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logHandler{l.Handler.WithAttrs(attrs), l.redact}
}

// WithGroup implements slog.Handler.
func (l logHandler) WithGroup(name string) slog.Handler {
	return logHandler{l.Handler.WithGroup(name), l.redact}
}

// JSON returns raw with each string in it, keys among them, as Text shows it, but not cut; nil where raw is no JSON.
func (r *Redactor) JSON(raw []byte) []byte {
	if !rawjson.Valid(raw) {
		return nil
	}
	var out []byte
	for len(raw) > 0 {
		at := bytes.IndexByte(raw, '"')
		if at < 0 {
			break
		}
		end := at + 1
		for ; raw[end] != '"'; end++ {
			if raw[end] == '\\' {
				end++
			}
		}
		text, _ := rawjson.String(raw[at : end+1])
		out = rawjson.AppendQuote(append(out, raw[:at]...), r.Show(text, true, len(text)+len(raw)))
		raw = raw[end+1:]
	}
	return append(out, raw...)
}

// Secrets returns s with each secret replaced, and all else as it stands.
func (r *Redactor) Secrets(s string) string {
	s = r.secrets.Replace(s)
	if r.Live == nil {
		return s
	}
	for _, secret := range r.Live() {
		if len(secret) >= minSecret {
			s = strings.ReplaceAll(s, secret, "***")
		}
	}
	return s
}
