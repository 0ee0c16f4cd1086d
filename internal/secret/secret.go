// Package secret finds secrets in texts and in JSON, and puts marks in their place.
//
// For example, "export TOKEN=ghp_16C7e42F292c6912E7710c838347Ae178B4a" becomes "export
// TOKEN=[masked:5f2a9c01d2e4]". The digits are a keyed digest: equal secrets have equal marks, and
// without the key nobody can try out what the secret may be.
//
// A secret is
//   - what a rule of gitleaks finds, see gitleaks.toml: tokens of known services, private keys,
//     random values after a name like api_key,
//   - the value of a member, header, variable or parameter with a well-known name, such as password or Authorization,
//   - the password in an address, such as https://ann:hunter2@example.com, and parameters that sign it,
//   - any of these in base64, percent-encoded, or in JSON that is the text of a string.
package secret

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

const (
	// MarkStart is how each mark begins.
	MarkStart = "[masked"

	maxDepth = 4 // of texts in texts: JSON in a string, base64 of it, and so on

	knownMin = 8 // bytes of a known secret: shorter ones stand in texts by chance
)

// Masker puts marks in the place of secrets. Its methods may be called concurrently.
type Masker struct {
	key   []byte
	known []string  // are secrets wherever they stand, see Learn
	hub   *Known    // likewise
	found *[]string // gets what is masked; nil for nobody

	strict  bool // whatever has the name of a secret is one, see Learn
	command bool // a text may be a command: nothing is masked that a shell could take for one
	depth   int  // of the text that it looks at: how many texts that one is in
}

// inside returns m for texts in the text that it looks at.
func (m Masker) inside() *Masker {
	m.depth++
	return &m
}

// New returns a Masker whose marks have digests with key. Without a key all marks are "[masked]".
func New(key []byte) *Masker { return new(Known).Masker(key) }

// Known is a set of secrets that its Maskers mask wherever they are, whatever they look like. Its methods may be
// called concurrently.
type Known struct {
	mu  sync.RWMutex
	all []string // as they are, and as JSON writes them; Add replaces the slice
}

// Add adds secrets.
func (k *Known) Add(secrets ...string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := slices.Clone(k.all)
	for _, secret := range secrets {
		quoted := string(rawjson.Quote(secret))
		all = append(all, secret, quoted[1:len(quoted)-1])
	}
	slices.Sort(all)
	k.all = slices.Compact(all)
}

// Masker returns a Masker as New does that masks these secrets, too, also those that are added later.
func (k *Known) Masker(key []byte) *Masker { return &Masker{key: key, hub: k} }

func (k *Known) list() []string {
	if k == nil {
		return nil
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.all
}

// Mark returns what stands in the place of secret.
func (m *Masker) Mark(secret string) string {
	if m.found != nil {
		*m.found = append(*m.found, secret)
	}
	if len(m.key) == 0 {
		return MarkStart + "]"
	}
	h := hmac.New(sha256.New, m.key)
	h.Write([]byte("toolhub/secret\x00"))
	h.Write([]byte(secret))
	return MarkStart + ":" + hex.EncodeToString(h.Sum(nil)[:6]) + "]"
}

// IsMark reports whether text is a mark, and nothing else.
func IsMark(text string) bool {
	inner, begins := strings.CutPrefix(text, MarkStart)
	inner, ends := strings.CutSuffix(inner, "]")
	return begins && ends && (inner == "" || len(inner) == 13 && inner[0] == ':' &&
		strings.Trim(inner[1:], "0123456789abcdef") == "")
}

// Find returns the secrets in a text, which is not encoded.
func Find(text string) (all []string) {
	for _, s := range append(scan(text), inAddresses(text, false, false)...) {
		all = append(all, text[s.from:s.to])
	}
	return all
}

// Text returns text with "[masked]" in the place of secrets, for people: of an address each name
// without a password is taken for a token. With command, text may be a command or a program: then
// nothing is masked that could hide a command.
func Text(text string, command bool) string {
	text, _ = (&Masker{strict: true, command: command}).Text(text)
	return text
}

// Text returns text with marks in the place of secrets, and how many it has put there. Without
// secrets it is text itself.
func (m *Masker) Text(text string) (masked string, n int) {
	if m.depth > maxDepth || !m.may(text) {
		return text, 0
	}
	if trimmed := strings.TrimSpace(text); trimmed != "" && (trimmed[0] == '{' || trimmed[0] == '[') &&
		rawjson.Valid([]byte(trimmed)) {
		masked, n := m.inside().JSON([]byte(trimmed))
		if n == 0 {
			return text, 0
		}
		start := strings.Index(text, trimmed)
		return text[:start] + string(masked) + text[start+len(trimmed):], n
	}
	found := m.find(text)
	return m.put(text, found), len(found)
}

// JSON returns raw, which is one valid JSON value, with marks in the place of the strings, numbers
// and names of members that are secrets or have secrets in them, and how many those are. at are
// JSON pointers (RFC 6901) to further values that are secret; the element "*" stands for any member
// or index. Every other byte stays. Without secrets it is raw itself.
func (m *Masker) JSON(raw []byte, at ...string) (masked []byte, n int) {
	if len(raw) == 0 || len(at) == 0 && !m.may(asText(raw)) {
		return raw, 0
	}
	w := walk{masker: m.inside(), raw: raw}
	w.value(0, "", pointers(at))
	if w.n == 0 {
		return raw, 0
	}
	return append(w.out, raw[w.done:]...), w.n
}

// Learn is JSON for the arguments of a call: there, whatever has the name of a secret is one,
// however short. With command, nothing is masked that a shell could take for a command. It returns
// a Masker that masks what was found here wherever else it stands, too: for example where a server
// repeats the password that it was called with. Names of members stay. Secrets of fewer than 8
// bytes are not learned. Without secrets it is m itself.
func (m *Masker) Learn(raw []byte, command bool, at ...string) (masked []byte, learned *Masker) {
	if len(at) == 0 && !m.may(asText(raw)) {
		return raw, m // the usual case costs no memory
	}
	var found []string
	(&Masker{key: m.key, known: m.known, hub: m.hub, found: &found, command: command}).JSON(raw, at...)
	learned = m
	for _, secret := range found {
		if len(secret) >= knownMin && !slices.Contains(learned.known, secret) {
			if learned == m {
				learned = &Masker{key: m.key, known: slices.Clone(m.known), hub: m.hub}
			}
			learned.known = append(learned.known, secret)
		}
	}
	strict := &Masker{key: m.key, known: learned.known, hub: m.hub, strict: true, command: command}
	masked, _ = strict.JSON(raw, at...) // one value may repeat another
	return masked, learned
}

// may reports whether there may be a secret in text, which may be JSON as it is written.
func (m *Masker) may(text string) bool {
	return len(m.known) > 0 && text != "" || suspicious(text) ||
		slices.ContainsFunc(m.hub.list(), func(secret string) bool { return strings.Contains(text, secret) })
}

// put returns text with marks in the place of found.
func (m *Masker) put(text string, found []span) string {
	var out strings.Builder
	done := 0
	for _, s := range found {
		out.WriteString(text[done:s.from])
		out.WriteString(m.Mark(text[s.from:s.to]))
		done = s.to
	}
	out.WriteString(text[done:])
	return out.String()
}

// find returns the secrets in text, where there may be some, as merged does.
func (m *Masker) find(text string) []span {
	found := scan(text)
	if m.command {
		found = withoutCommands(text, found)
	}
	return merged(slices.Concat(found, inAddresses(text, m.strict, m.command), m.encoded(text), m.repeats(text)))
}

// repeats returns where known secrets are in text.
func (m *Masker) repeats(text string) (found []span) {
	for _, secret := range slices.Concat(m.known, m.hub.list()) {
		for i := 0; ; {
			at := strings.Index(text[i:], secret)
			if at < 0 {
				break
			}
			found = append(found, span{i + at, i + at + len(secret)})
			i += at + len(secret)
		}
	}
	return found
}

// merged returns found in order, those that overlap as one.
func merged(found []span) (all []span) {
	slices.SortFunc(found, func(a, b span) int { return a.from - b.from })
	for _, s := range found {
		if last := len(all) - 1; last >= 0 && s.from < all[last].to {
			all[last].to = max(all[last].to, s.to)
		} else {
			all = append(all, s)
		}
	}
	return all
}

// span is a part of a text.
type span struct{ from, to int }

// walk goes through one JSON value and collects it anew, with marks.
type walk struct {
	masker *Masker // for the texts in the value
	raw    []byte
	out    []byte
	done   int // bytes of raw that are in out, or masked
	n      int
}

// replace puts with in the place of raw[from:to], which is behind everything that was replaced before.
func (w *walk) replace(from, to int, with string) {
	w.out = append(w.out, w.raw[w.done:from]...)
	w.out = rawjson.AppendQuote(w.out, with)
	w.done = to
	w.n++
}

// value masks the value at i, which is that of a member name, and returns the index behind it. at
// are pointers, relative to it.
func (w *walk) value(i int, name string, at [][]string) int {
	i = rawjson.SkipSpace(w.raw, i)
	end := rawjson.SkipValue(w.raw, i)
	if slices.ContainsFunc(at, func(p []string) bool { return len(p) == 0 }) {
		w.secret(i, end)
		return end
	}
	switch c := w.raw[i]; {
	case w.masker.strict && (c == '"' || c == '[' || c == '{' || c <= '9' && end-i >= 4) && Name(name):
		w.secret(i, end)
	case c == '{':
		w.members(i, at)
	case c == '[':
		n := 0
		_ = rawjson.Elements(w.raw[i:end], func(one []byte) bool {
			w.value(i+offset(w.raw[i:], one), name, below(at, strconv.Itoa(n)))
			n++
			return true
		})
	case c == '"':
		if name == "" && !w.masker.may(asText(w.raw[i:end])) {
			return end // the usual case: nothing is decoded
		}
		text, ok := rawjson.String(w.raw[i:end])
		switch {
		case !ok:
		case secretMember(name, text):
			w.secret(i, end)
		default:
			if masked, n := w.masker.Text(text); n > 0 {
				w.replace(i, end, masked)
				w.n += n - 1
			}
		}
	case c == '-' || c >= '0' && c <= '9':
		if m := w.masker; isPassword(name) || slices.Contains(m.known, string(w.raw[i:end])) ||
			slices.Contains(m.hub.list(), string(w.raw[i:end])) {
			w.secret(i, end)
		}
	}
	return end
}

// secret masks the whole value in raw[i:end], unless it says nothing.
func (w *walk) secret(i, end int) {
	value := w.raw[i:end]
	text, ok := rawjson.String(value)
	if !ok {
		text = string(value)
	}
	if text == "" || IsMark(text) || rawjson.IsNull(value) {
		return
	}
	w.replace(i, end, w.masker.Mark(text))
}

func (w *walk) members(i int, at [][]string) {
	object := w.raw[i:]
	title := "" // the name in {"name": "Authorization", "value": "…"}
	_ = rawjson.Members(object[:rawjson.SkipValue(object, 0)], func(m rawjson.Member) bool {
		step, named := "", ""
		if len(at) > 0 {
			step = m.Name()
		}
		switch {
		case m.Is("name") || m.Is("key") || m.Is("Name") || m.Is("Key"):
			title, _ = rawjson.String(m.Value)
		case title != "" && (m.Is("value") || m.Is("Value")):
			named = title
		}
		if suspicious(asText(m.Key)) {
			named = m.Name()
			names := &Masker{key: w.masker.key, hub: w.masker.hub, found: w.masker.found, depth: w.masker.depth}
			if masked, n := names.Text(named); n > 0 { // written the wrong way round
				at := i + offset(object, m.Key)
				w.replace(at-len(`"`), at+len(m.Key)+len(`"`), masked)
				w.n += n - 1
			}
		}
		w.value(i+offset(object, m.Value), named, below(at, step))
		return true
	})
}

// offset is where part, a slice of whole, begins in it.
func offset(whole, part []byte) int { return cap(whole) - cap(part) }

// pointers takes JSON pointers apart.
func pointers(at []string) (out [][]string) {
	for _, p := range at {
		if p == "" {
			out = append(out, nil)
			continue
		}
		steps := strings.Split(strings.TrimPrefix(p, "/"), "/")
		for i, s := range steps {
			steps[i] = rawjson.PointerName(s)
		}
		out = append(out, steps)
	}
	return out
}

// below returns what is left of the pointers that lead to or through the member or element step.
func below(at [][]string, step string) (out [][]string) {
	for _, p := range at {
		if len(p) > 0 && (p[0] == "*" || strings.EqualFold(p[0], step)) {
			out = append(out, p[1:])
		}
	}
	return out
}
