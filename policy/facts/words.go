package facts

import (
	"strings"
	"unicode/utf8"
)

// effect is the effect of a tool that a verb names.
type effect uint8

const (
	noEffect effect = iota
	reads           // looks at something: get, list, search
	inspects        // looks at what it is given, and does not carry it out: validate, explain
	produces        // makes something of its input; whether it keeps that, the verb does not say: generate, convert
	creates
	updates
	sends
	uploads
	destroys
	executes
)

func (e effect) writes() bool { return e >= creates }

// name is the write effect as the permission profile calls it.
func (e effect) name() string {
	switch e {
	case creates:
		return "create"
	case updates:
		return "update"
	case sends:
		return "send"
	case uploads:
		return "upload"
	case destroys:
		return "delete"
	case executes:
		return "execute"
	}
	return ""
}

// verb is the meaning of a word as a verb.
type verb struct {
	effect effect
	soft   bool // as often a noun or adjective: a verb only where a verb must stand
}

// verbOf returns the meaning of word, in lower case and its base form, as a verb; the zero verb where it is unknown.
// A switch and not a table: nothing is built at start, nothing can change it, and it allocates nothing.
func verbOf(word string) verb {
	if e := hardVerb(word); e != noEffect {
		return verb{effect: e}
	}
	return verb{effect: softVerb(word), soft: true}
}

// hardVerb knows the verbs that are hardly ever anything else in the name of a tool.
func hardVerb(word string) effect {
	switch word {
	case "get", "list", "search", "find", "read", "show", "view", "describe", "count", "lookup", "retrieve", "browse",
		"inspect", "check", "enumerate", "discover", "obtain", "return", "provide", "display", "gather", "locate",
		"grep", "glob", "preview", "recall", "ping", "wait", "fetch", "query", "crawl", "scrape", "screenshot",
		"whoami", "identify", "detect", "watch", "research", "peek", "tail", "exists", "suggest", "recommend":
		return reads
	case "analyze", "analyse", "validate", "verify", "explain", "lint", "parse", "compare", "diff", "diagnose",
		"summarize", "summarise", "classify", "estimate", "calculate", "compute", "measure", "predict", "forecast",
		"geocode", "tokenize", "audit", "interpret":
		return inspects
	case "generate", "render", "convert", "translate", "transform", "extract", "visualize", "visualise", "encode",
		"decode":
		return produces
	case "create", "add", "insert", "append", "prepend", "import", "install", "register", "provision", "init",
		"initialize", "initialise", "bootstrap", "scaffold", "clone", "duplicate", "write", "save", "upsert",
		"download",
		"export", "persist", "allocate", "attach", "enqueue", "open":
		return creates
	case "update", "edit", "modify", "rename", "replace", "move", "rebase", "assign", "unassign", "enable", "disable",
		"activate", "deactivate", "pause", "resume", "restart", "apply", "configure", "toggle", "unpin", "unlock",
		"approve", "reject", "reopen", "subscribe", "unsubscribe", "unfollow", "grant", "migrate", "restore",
		"rerun", "reconnect", "navigate", "click", "press", "drag", "hover", "resize", "emulate", "interact", "fill",
		"manage", "reorder", "adjust", "increment", "decrement", "mutate", "alter", "upgrade", "downgrade", "cordon",
		"uncordon", "sync", "synchronize", "login", "logout", "authorize", "switch", "rotate", "cancel", "accept":
		return updates
	case "send", "publish", "submit", "notify", "broadcast", "invite", "reply", "tweet", "forward", "pay", "charge",
		"refund", "buy", "purchase", "transfer":
		return sends
	case "upload":
		return uploads
	case "delete", "remove", "destroy", "purge", "erase", "wipe", "truncate", "uninstall", "prune", "overwrite",
		"discard", "terminate", "kill", "unlink", "revoke", "evict", "drain", "cleanup", "revert", "rollback",
		"shutdown",
		"nuke", "decommission", "detach", "unpublish", "unregister", "deregister", "rm", "del", "rmdir":
		return destroys
	case "execute", "exec", "eval", "evaluate", "invoke", "spawn":
		return executes
	}
	return noEffect
}

// softVerb knows the verbs that are nouns or adjectives as well: they count where a verb must stand.
func softVerb(word string) effect {
	switch word {
	case "post", "comment", "fork", "copy", "new", "make", "put", "store", "record", "book", "order", "stage", "tag",
		"snapshot", "branch", "commit", "backup", "build":
		return creates
	case "set", "change", "patch", "merge", "mark", "pin", "lock", "close", "start", "stop", "scale", "rollout",
		"schedule", "pull", "push", "stash", "type", "select", "handle", "swap", "fix", "archive", "label", "link",
		"trigger", "complete", "vote", "star", "deploy", "follow", "react", "checkout", "format", "pick":
		return updates
	case "message", "email", "mail", "share", "request", "call", "chat", "ask":
		return sends
	case "drop", "clear", "clean", "reset", "empty", "flush", "expire", "trash", "undo", "abort":
		return destroys
	case "run", "shell", "script", "command", "cmd", "process", "perform":
		return executes
	}
	return noEffect
}

// thirdPerson returns the base form of word where it looks like the third person of a verb: "deletes", "modifies".
func thirdPerson(word string) (string, bool) {
	if len(word) < 4 || word[len(word)-1] != 's' || strings.HasSuffix(word, "ss") {
		return "", false
	}
	base := word[:len(word)-1]
	if hardVerb(base) != noEffect || softVerb(base) != noEffect {
		return base, true
	}
	if stem, ok := strings.CutSuffix(word, "ies"); ok && stem == "modif" {
		return "modify", true
	}
	if stem, ok := strings.CutSuffix(word, "es"); ok && (hardVerb(stem) != noEffect || softVerb(stem) != noEffect) {
		return stem, true
	}
	return "", false
}

// participle returns the effect that a past participle names: "will be deleted".
func participle(word string) effect {
	switch word {
	case "deleted", "removed", "destroyed", "erased", "wiped", "overwritten", "purged", "dropped", "cleared", "lost",
		"terminated", "killed", "revoked", "discarded", "truncated":
		if word == "truncated" || word == "lost" || word == "dropped" {
			return noEffect // said of output
		}
		return destroys
	case "created", "written", "saved", "inserted", "appended", "installed", "registered", "downloaded":
		return creates
	case "updated", "modified", "replaced", "renamed", "moved":
		return updates
	case "sent", "published", "submitted":
		return sends
	case "executed":
		return executes
	}
	return noEffect
}

// derivative reports whether word names something that a producing tool hands back rather than keeps.
func derivative(word string) bool {
	switch word {
	case "chart", "charts", "diagram", "diagrams", "graph", "graphs", "plot", "map", "maps", "table", "summary",
		"preview", "link", "links", "hash", "qr", "histogram", "content", "text", "coordinates", "address", "uuid",
		"markdown", "cloud", "slug", "description", "explanation", "statistics", "embedding", "embeddings", "data":
		return true
	}
	return false
}

// networkWord reports whether a word of a tool's name or first sentence points to other machines.
func networkWord(word string) bool {
	switch word {
	case "web", "http", "https", "url", "urls", "website", "websites", "webpage", "internet", "online", "download",
		"upload", "crawl", "scrape", "webhook", "email", "slack", "remote", "browser", "network", "ssh", "ftp", "smtp",
		"tweet", "news", "helm", "registry":
		return true
	}
	return false
}

// databaseWord reports whether a word speaks of a database, whose queries are programs.
func databaseWord(word string) bool {
	switch word {
	case "db", "sql", "database", "databases", "postgres", "postgresql", "mysql", "mariadb", "sqlite", "bigquery",
		"snowflake",
		"redshift", "clickhouse", "duckdb", "oracle", "mssql", "cypher", "neo4j", "graphql", "warehouse", "supabase",
		"athena":
		return true
	}
	return false
}

// browserWord reports whether a word of a tool's name or first sentence points to a browser.
func browserWord(word string) bool {
	switch word {
	case "browser", "page", "pages", "webpage", "tab", "tabs", "devtools", "playwright", "puppeteer", "lighthouse",
		"dom",
		"screenshot":
		return true
	}
	return false
}

// tokens calls yield for each word of an identifier, in lower case: words end at anything but a
// letter or digit, and where camelCase begins another one. A word is valid during the call only.
func tokens(identifier string, yield func(word []byte)) {
	var buffer [maxWord]byte
	for n, i := nextWord(identifier, 0, &buffer); n > 0; n, i = nextWord(identifier, i, &buffer) {
		yield(buffer[:n])
	}
}

// maxWord bounds the bytes of a word that are looked at.
const maxWord = 48

// nextWord writes the first word of identifier[i:] to buffer. It returns the word's length, 0 where
// there is none, and the index to go on at.
func nextWord(identifier string, i int, buffer *[maxWord]byte) (n, next int) {
	for ; i < len(identifier); i++ {
		c := identifier[i]
		upper := c >= 'A' && c <= 'Z'
		if upper && n > 0 {
			previous := identifier[i-1]
			switch {
			case previous >= 'a' && previous <= 'z', previous >= '0' && previous <= '9':
				return n, i
			case previous >= 'A' && previous <= 'Z' && i+1 < len(identifier) && identifier[i+1] >= 'a' &&
				identifier[i+1] <= 'z':
				return n, i
			}
		}
		switch {
		case upper:
			c += 'a' - 'A'
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c >= utf8.RuneSelf:
		case n > 0:
			return n, i
		default:
			continue
		}
		if n < len(buffer) {
			buffer[n] = c
			n++
		}
	}
	return n, i
}

// split returns the words of an identifier.
func split(identifier string) []string {
	words := make([]string, 0, 6)
	tokens(identifier, func(word []byte) { words = append(words, string(word)) })
	return words
}
