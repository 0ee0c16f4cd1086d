package upstream

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// maxText bounds a foreign text in an error, a hint or a log record, in bytes.
const maxText = 400

// maxScanned is how much of a foreign text is looked at, in bytes: of what is longer, the beginning is enough.
const maxScanned = 16 << 10

// redactor makes what a server says fit for the log, the hub's health, records, and messages to people: the secrets of the
// server's entry are taken out, however they are written (see secretsOf), credentials inside URLs too, and so is what a
// terminal would obey; and it is short. Whatever a server says and is no result of a call passes through it.
type redactor struct {
	secrets *strings.Replacer
	known   []string // that secrets replaces
}

func newRedactor(cfg ServerConfig) *redactor {
	r := &redactor{known: secretsOf(cfg)}
	var pairs []string
	for _, secret := range r.known {
		pairs = append(pairs, secret, "***")
	}
	r.secrets = strings.NewReplacer(pairs...)
	return r
}

// text returns a foreign text fit to be shown: without secrets, control characters and terminal sequences, on one line,
// and not too long.
func (r *redactor) text(s string) string { return r.beginning(s, maxText) }

// beginning is text that is cut to n bytes instead.
func (r *redactor) beginning(s string, n int) string {
	whole := len(s) <= maxScanned
	if !whole {
		s = s[:maxScanned]
	}
	return r.show(s, whole, n)
}

// show is text of s, cut to n bytes. Unless s is whole, it was cut, and what could be the beginning of a secret at its end is
// left out, too.
func (r *redactor) show(s string, whole bool, n int) string {
	s = cleanText(s) // first: what is left out must not hold the parts of a secret asunder
	s = r.secrets.Replace(urlCredentials.ReplaceAllString(s, "$1$2"))
	for _, mark := range []string{"...", "…"} { // where somebody else has cut it
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
	return truncate(s, n)
}

// minPart is how much of a secret's beginning counts as such.
const minPart = 4

// withoutPart is s without the beginning of a secret at its end.
func (r *redactor) withoutPart(s string) string {
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

// error is err fit to be logged and shown. What the server itself has answered reaches the client as it is.
func (r *redactor) error(err error) error {
	var rpc *tool.RPCError
	var f *tool.Failure
	switch {
	case errors.As(err, &f):
		safe := *f
		safe.Message = r.beginning(f.Message, maxMessage)
		if f.Cause != nil {
			safe.Cause = &shownError{text: r.text(f.Cause.Error()), cause: f.Cause}
		}
		return &safe
	case errors.As(err, &rpc):
		safe := *rpc
		safe.Shown = r.text(rpc.Message)
		return &safe
	}
	return err
}

// maxMessage bounds what the hub says of a failed call, in bytes: its own words, and of the server's no more than maxText.
const maxMessage = 2000

// shownError is an error whose text was redacted.
type shownError struct {
	text  string
	cause error
}

func (e *shownError) Error() string { return e.text }

func (e *shownError) Unwrap() error { return e.cause }

// exclusions are all, as people may see them.
func (r *redactor) exclusions(all []tool.Exclusion) []tool.Exclusion {
	for i := range all {
		all[i].Tool, all[i].Reason = r.text(all[i].Tool), r.beginning(all[i].Reason, maxMessage)
	}
	return all
}

// urlCredentials matches the parts of a URL that may hold credentials: user information and query.
var urlCredentials = regexp.MustCompile(`(https?://)(?:[^\s/@"']*@)?([^\s?"'<>]*)(?:\?[^\s"'<>]*)?`)

// safeURL is raw without user information, query and fragment.
func safeURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "(malformed URL)"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}

// ansi matches terminal control sequences: CSI, OSC, and two-byte escapes.
var ansi = regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[@-Z\\\\-_])")

// cleanText returns s without terminal sequences and without control, formatting and invalid characters.
func cleanText(s string) string {
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

// truncate cuts s to at most n bytes at a character's boundary, and marks the cut.
func truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// redactingLog is a log in which every record is fit to be shown.
type redactingLog struct {
	slog.Handler
	redact *redactor
}

// Handle implements slog.Handler.
func (l redactingLog) Handle(ctx context.Context, r slog.Record) error {
	shown := slog.NewRecord(r.Time, r.Level, l.redact.beginning(r.Message, maxStderrLine), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		shown.AddAttrs(l.attr(a))
		return true
	})
	return l.Handler.Handle(ctx, shown)
}

// WithAttrs implements slog.Handler.
func (l redactingLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return redactingLog{l.Handler.WithAttrs(attrs), l.redact} // they name the server and the session, in the hub's own words
}

// WithGroup implements slog.Handler.
func (l redactingLog) WithGroup(name string) slog.Handler {
	return redactingLog{l.Handler.WithGroup(name), l.redact}
}

func (l redactingLog) attr(a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindString, slog.KindAny:
		return slog.String(a.Key, l.redact.beginning(a.Value.String(), maxMessage))
	}
	return a
}
