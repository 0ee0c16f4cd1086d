package secret

import (
	"bytes"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
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
// masks what a Masker finds, and the secrets of the server's entry in every spelling that spellings
// knows. It takes out credentials inside URLs, and terminal sequences; and it shortens. Every text
// of a server passes through it. Of the results of calls Own masks less.
type Redactor struct {
	known []string // the secrets of the entry, in all their spellings
	own   []string // those that look like keys of services, as JSON writes them

	Live func() []string // further secrets, which change; nil for none
}

// masker returns a Masker for the secrets as they are now.
func (r *Redactor) masker() *Masker {
	m := &Masker{known: r.known}
	if r.Live != nil {
		live := slices.DeleteFunc(r.Live(), func(secret string) bool { return len(secret) < minSecret })
		m.known = slices.Concat(m.known, live)
	}
	return m
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
	m := r.masker()
	s = hidden.Line(s) // first: a character that is left out must not divide a secret
	s, _ = m.Text(urlCredentials.ReplaceAllString(s, "$1$2"))
	for _, mark := range []string{"...", "…", `\u2026`} { // the server may have cut the text itself
		for at := strings.Index(s, mark); at >= 0 && at < len(s); {
			kept := m.withoutPart(s[:at])
			s = kept + s[at:]
			next := len(kept) + len(mark)
			at = next + strings.Index(s[next:]+mark, mark)
		}
	}
	if !whole {
		s = m.withoutPart(s) + "…"
	}
	return hidden.Cut(s, n)
}

// withoutPart returns s without the beginning of a known secret at its end.
func (m *Masker) withoutPart(s string) string {
	end := len(s)
	for _, secret := range m.known {
		for n := min(len(secret)-1, len(s)); n >= minPart; n-- {
			if strings.HasSuffix(s, secret[:n]) {
				end = min(end, len(s)-n)
				break
			}
		}
	}
	return s[:end]
}

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

// Handler returns a log handler that redacts each record and passes it to next.
func (r *Redactor) Handler(next slog.Handler) slog.Handler { return logHandler{next, r.Beginning} }

// JSON returns raw with each string in it, keys among them, as Text shows it, but not cut; nil where raw is no JSON.
func (r *Redactor) JSON(raw []byte) []byte {
	if !rawjson.Valid(raw) {
		return nil
	}
	var out []byte
	for at := bytes.IndexByte(raw, '"'); at >= 0; at = bytes.IndexByte(raw, '"') {
		end := rawjson.SkipValue(raw, at)
		text, _ := rawjson.String(raw[at:end])
		out = rawjson.AppendQuote(append(out, raw[:at]...), r.Show(text, true, len(text)+len(raw)))
		raw = raw[end:]
	}
	return append(out, raw...)
}

// Own returns raw, which is valid JSON, with "[masked]" in its strings in the place of the secrets
// of the entry that are keys of services: they are the hub's, and no client's. Everything else
// stays. Without such secrets it is raw itself.
func (r *Redactor) Own(raw []byte) []byte {
	all := r.own
	if r.Live != nil {
		all = slices.Concat(all, r.Live()) // tokens, which no JSON escapes
	}
	m := &Masker{}
	for _, secret := range all {
		if len(secret) >= minSecret && strings.Contains(asText(raw), secret) {
			m.known = append(m.known, secret)
		}
	}
	if m.known == nil {
		return raw
	}
	var out []byte
	for at := bytes.IndexByte(raw, '"'); at >= 0; at = bytes.IndexByte(raw, '"') {
		end := rawjson.SkipValue(raw, at)
		text := string(raw[at+1 : end-1])
		out = append(append(out, raw[:at+1]...), m.put(text, merged(m.repeats(text)))...)
		out, raw = append(out, '"'), raw[end:]
	}
	return append(out, raw...)
}
