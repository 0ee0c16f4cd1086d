package config

import (
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/mcp-toolhub/mcp-toolhub/internal/shape"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// The functions below check one value. They answer with what is wrong and what to do, "" where nothing is, and never
// with a piece of the value: it may be, or come from, a secret.

// faultIf is the fault and what to do about it where the value is bad.
func faultIf(bad bool, fault, hint string) (string, string) {
	if bad {
		return fault, hint
	}
	return "", ""
}

func noNUL(s string) (string, string) {
	return faultIf(strings.ContainsRune(s, 0),
		"holds a NUL character", "remove it: no argument or variable of a program can hold one")
}

func oneLine(s string) (string, string) {
	return faultIf(strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f }) || len(s) > 128,
		"want one line of 128 bytes at most", "shorten it")
}

// webURL says nothing of url.Parse's error: that one quotes the URL, which may hold a token.
func webURL(s string) (string, string) {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return "not a URL", "write https://host/path"
	case u.Scheme == "":
		return "a URL without a scheme", "write https:// (or http://) in front"
	case u.Scheme != "http" && u.Scheme != "https":
		return "a URL that is neither http nor https", "write https://host/path"
	case u.Hostname() == "":
		return "a URL without a host", "write https://host/path"
	}
	return "", ""
}

func origin(s string) (string, string) {
	problem, _ := webURL(s)
	return faultIf(problem != "" || strings.HasSuffix(s, "/") || strings.Count(s, "/") != 2,
		"not an origin", `write scheme and host only: "https://app.example.com"`)
}

// publicURL refuses what no authorization server sends a browser back to.
func publicURL(s string) (string, string) {
	if problem, hint := webURL(s); problem != "" {
		return problem, hint
	}
	u, _ := url.Parse(s)
	return faultIf(u.Scheme != "https" && !loopback(u.Host) || u.RawQuery != "" || u.Fragment != "" || u.User != nil,
		"not an https address of this hub", `write it like "https://hub.example.com", http on this machine apart`)
}

// onLoopback refuses what the hub cannot wait for a browser at.
func onLoopback(s string) (string, string) {
	u, err := url.Parse(s)
	return faultIf(err != nil || u.Scheme != "http" || u.Hostname() != "localhost" && u.Hostname() != "127.0.0.1" ||
		u.Port() == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil,
		"not an address of this machine", "write http://localhost:PORT/PATH or http://127.0.0.1:PORT/PATH; elsewhere, "+
			"set hub.http.public_url")
}

var hostPattern = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

func hostName(s string) (string, string) {
	_, err := netip.ParseAddr(s)
	return faultIf(err != nil && !hostPattern.MatchString(s),
		"not a host name", `write the name only, without scheme and port: "hub.example.com"`)
}

func listenAddress(s string) (string, string) {
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return "not an address", `write host:port: "127.0.0.1:8808"`
	}
	n, err := strconv.Atoi(port)
	return faultIf(err != nil || n < 0 || n > 65535,
		"a port that is no number from 0 to 65535", `write host:port: "127.0.0.1:8808"`)
}

// loopback tells whether only this machine can reach a listen address.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip, noIP := netip.ParseAddr(host)
	return err == nil && (strings.EqualFold(host, "localhost") || noIP == nil && ip.Unmap().IsLoopback())
}

// treeGlob checks a pattern over whole paths, where ** stands for directories.
func treeGlob(s string) (string, string) {
	if !doublestar.ValidatePattern(filepath.ToSlash(s)) {
		return "a glob that is not closed", "close its brackets, or escape them with a backslash"
	}
	return faultIf(strings.Trim(s, "/ ") == "", "a glob that means everything",
		"name the directories or files to refuse")
}

// nameGlob checks a pattern over canonical names, where only * and ? are special.
func nameGlob(s string) (string, string) {
	special := func(c rune) bool {
		return unicode.IsSpace(c) || !unicode.IsGraphic(c) || strings.ContainsRune(`[]{}\`, c)
	}
	return faultIf(strings.ContainsFunc(s, special),
		"not a glob over names", `use * (any characters) and ? (one character): "mcp.github.*"`)
}

func variableKey(name string) (string, string) {
	foreign := func(c rune) bool { return c <= ' ' || c == '=' || c == 0x7f }
	return faultIf(name == "" || strings.ContainsFunc(name, foreign),
		"not the name of a variable", "use letters, digits and _")
}

// headerToken is the token of RFC 9110, section 5.6.2.
var headerToken = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

func headerName(name string) (string, string) {
	return faultIf(!headerToken.MatchString(name), "not the name of an HTTP header", "use letters, digits and -")
}

func headerValue(s string) (string, string) {
	return faultIf(strings.ContainsFunc(s, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }),
		"holds a line break or control character",
		"an HTTP header takes one line: remove it, also at the end of the variable")
}

var plainName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

func profileName(name string) (string, string) {
	return faultIf(!plainName.MatchString(name),
		"not a name for a profile", "use lower-case letters, digits, - and _, 64 at most")
}

// minTokenBytes is the least that a bearer token may have: 128 bits where every byte is random.
const minTokenBytes = 16

// outside is a secret: a string that must come from outside of the file.
type outside struct{}

func (outside) Read(r *shape.Reader, n *textfile.Node) (string, bool) {
	if n.Kind != textfile.Text {
		r.Expected(n, "a string", "give it by reference: ${env:NAME} or ${file:path}")
		return "", false
	}
	e, ok := r.Expand(n.Position, n.Text, false)
	switch {
	case !ok:
	case e.FromFile || !e.Reference:
		r.Fault(n.Position, "a token that stands in the file",
			"keep it elsewhere and give it by reference: ${env:NAME} or ${file:path}")
	case len(e.Text) < minTokenBytes:
		r.Fault(n.Position, "the token is shorter than 16 bytes",
			`use a random one, for instance from "openssl rand -hex 32"`)
	case strings.ContainsFunc(e.Text, func(c rune) bool { return c <= ' ' || c >= 0x7f }):
		r.Fault(n.Position, "the token holds a space, line break or other character that no HTTP header can carry",
			"use letters and digits")
	default:
		return e.Text, true
	}
	return "", false
}

func (outside) Schema() shape.Schema { return shape.Schema{"type": "string", "pattern": `\$\{`} }

// recordStore is persist.store. A password in it must come from outside of the file.
type recordStore struct{}

func (recordStore) Read(r *shape.Reader, n *textfile.Node) (string, bool) {
	known := []string{StoreSQLite, StoreOff}
	if n.Kind != textfile.Text {
		r.Expected(n, "a string", "write sqlite, off or postgres://USER@HOST/DATABASE")
		return "", false
	}
	if slices.Contains(known, n.Text) {
		return n.Text, true
	}
	e, ok := r.Expand(n.Position, n.Text, true)
	if !ok {
		return "", false
	}
	u, err := url.Parse(e.Text)
	if err == nil && u.Scheme != "postgres" && u.Scheme != "postgresql" {
		r.Fault(n.Position, "is neither sqlite nor off nor a URL that begins with postgres://",
			textfile.DidYouMean(n.Text, known, "write postgres://USER@HOST/DATABASE"))
		return "", false
	}
	if err != nil {
		r.Fault(n.Position, "is not a URL",
			"write postgres://USER@HOST/DATABASE; in a password, / @ : ? # and % are %2F %40 %3A %3F %23 and %25")
		return "", false
	}
	password, _ := u.User.Password()
	if u.Query().Has("password") || password != "" && (e.FromFile || holdsPassword(n.Text)) {
		r.Fault(n.Position, "a password that stands in the file",
			"keep it elsewhere: give it before the @ by reference, ${env:NAME} or ${file:path}, or in PGPASSWORD")
		return "", false
	}
	return e.Text, true
}

// reference matches a reference in a text that has no faults.
var reference = regexp.MustCompile(`\$\{[^}]*:-\$\{[^}]*\}\}|\$\{[^}]*\}`)

// holdsPassword reports whether a part of the password stands in the text of a URL itself.
func holdsPassword(text string) bool {
	u, err := url.Parse(reference.ReplaceAllString(text, ""))
	if err != nil {
		return true
	}
	password, _ := u.User.Password()
	return password != ""
}

func (recordStore) Schema() shape.Schema {
	return shape.Schema{"anyOf": []shape.Schema{{"type": "string", "enum": []string{StoreSQLite, StoreOff}},
		{"type": "string", "pattern": `^postgres(ql)?://|\$\{`}}}
}
