package facts

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// effect is an effect of a tool that a word of its declaration names. Words only tighten: there are
// none here that make a tool harmless.
type effect uint8

const (
	noEffect effect = iota
	destroys
	sends
	executes
)

// names are the effects as the permission profile calls them.
var names = [...]string{destroys: "delete", sends: "send", executes: "execute"}

// effectOf returns the effect that a word in lower case names as a verb.
func effectOf(word string) effect {
	switch word {
	case "delete", "remove", "destroy", "purge", "erase", "wipe", "truncate", "uninstall", "prune", "overwrite",
		"discard", "terminate", "kill", "unlink", "revoke", "evict", "drain", "cleanup", "revert", "rollback",
		"shutdown", "nuke", "unpublish", "unregister", "deregister", "rm", "del", "rmdir", "drop", "clear", "reset",
		"flush", "trash":
		return destroys
	case "send", "publish", "submit", "notify", "broadcast", "invite", "reply", "tweet", "pay", "charge",
		"refund", "buy", "purchase", "transfer", "upload":
		return sends
	case "execute", "exec", "eval", "evaluate", "spawn":
		return executes
	}
	return noEffect
}

// evidence is the first word for each effect, and where it stands; "" where there is none.
type evidence [executes + 1]string

func (e *evidence) add(of effect, word, where string) {
	if of != noEffect && e[of] == "" {
		e[of] = where + ` "` + word + `"`
	}
}

// wordEvidence is the evidence of a tool's name and of the first sentence of its description.
type wordEvidence struct {
	name     evidence // of the name
	opening  evidence // of the word that the description begins with
	network  bool     // a word points to other machines
	browser  bool     // a word points to a browser
	database bool     // a word speaks of a database, whose queries are programs
	query    bool     // the name speaks of a query
	files    bool     // the name speaks of files
}

// maxOpening bounds the bytes of a description that are read.
const maxOpening = 1 << 10

// readWords reads a tool's own name and the first sentence of its description.
func readWords(t *tool.Tool) wordEvidence {
	var e wordEvidence
	for _, w := range nameOf(t) {
		e.name.add(effectOf(w), w, "its name holds")
		e.files = e.files || w == "file" || w == "files" || w == "directory" || w == "folder"
		e.query = e.query || w == "query" || w == "sql"
		e.subject(w)
	}
	sentence, _, _ := strings.Cut(t.Description[:min(len(t.Description), maxOpening)], ". ")
	for i, w := range split(sentence) {
		if i == 0 {
			e.opening.add(cmp.Or(effectOf(w), effectOf(strings.TrimSuffix(w, "s"))), w, "its description begins with")
		}
		e.subject(w)
	}
	return e
}

// subject takes note of a word that says what the tool deals with.
func (e *wordEvidence) subject(word string) {
	switch word {
	case "web", "http", "https", "url", "urls", "website", "websites", "internet", "online", "download", "upload",
		"crawl", "scrape", "webhook", "email", "slack", "remote", "network", "ssh", "ftp", "smtp", "tweet", "news",
		"helm", "registry":
		e.network = true
	case "page", "pages", "tab", "tabs", "devtools", "playwright", "puppeteer", "lighthouse", "dom", "screenshot":
		e.browser = true
	case "browser", "webpage":
		e.network, e.browser = true, true
	case "db", "sql", "database", "databases", "postgres", "postgresql", "mysql", "mariadb", "sqlite", "bigquery",
		"snowflake", "redshift", "clickhouse", "duckdb", "oracle", "mssql", "cypher", "neo4j", "graphql", "warehouse",
		"supabase", "athena":
		e.database = true
	}
}

// nameOf returns the words of the tool's own name, but for the name of its server at the beginning.
func nameOf(t *tool.Tool) []string {
	words, own := split(t.Native), split(t.Server)
	for len(words) > 1 && slices.Contains(own, words[0]) {
		words = words[1:]
	}
	return words
}

// LooksReadOnly reports whether a tool that is not known to be read-only looks as if it were: its
// server says so, which is not trusted, or its name begins with a word such as get or list. Nothing
// is decided on that: a person can make a fact of it.
func (f *Facts) LooksReadOnly() bool {
	if f.declared == nil || f.ReadOnly.Value || f.ReadOnly.Origin != Inferred || f.Command.Value || f.Has(tagDangerous) {
		return false
	}
	words := nameOf(f.declared)
	if f.hinted || len(words) == 0 {
		return f.hinted
	}
	switch words[0] {
	case "get", "list", "read", "search", "find", "show", "view", "describe", "count", "lookup", "query", "fetch",
		"check", "inspect", "browse", "explain", "grep", "tail":
		return true
	}
	return false
}

// maxWord bounds the bytes of a word that are looked at.
const maxWord = 48

// split returns the words of a text in lower case: words end at anything but a letter or digit, and
// where camelCase begins another one.
func split(text string) []string {
	words := make([]string, 0, 6)
	var word []byte
	end := func() {
		if len(word) > 0 {
			words, word = append(words, string(word[:min(len(word), maxWord)])), word[:0]
		}
	}
	for i := range len(text) {
		c := text[i]
		switch {
		case c >= 'A' && c <= 'Z':
			if startsWord(text, i) {
				end()
			}
			word = append(word, c+'a'-'A')
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c >= utf8.RuneSelf:
			word = append(word, c)
		default:
			end()
		}
	}
	end()
	return words
}

// startsWord reports whether the capital at text[i] begins a word: after a small letter or digit,
// and as the last capital before a small letter.
func startsWord(text string, i int) bool {
	small := func(i int) bool { return i >= 0 && i < len(text) && text[i] >= 'a' && text[i] <= 'z' }
	before := i > 0 && (small(i-1) || text[i-1] >= '0' && text[i-1] <= '9')
	return before || small(i+1)
}
