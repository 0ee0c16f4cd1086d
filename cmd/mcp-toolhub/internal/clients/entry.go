package clients

import (
	"cmp"
	"math"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/splice"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// Pair is a variable or a header.
type Pair struct{ Name, Value string }

// Server is an entry of a client, translated into the words of the hub's config. Its texts refer to
// variables as that config does.
type Server struct {
	Name, Command, Dir, EnvFile string
	Args                        []string
	Env, Headers                []Pair // sorted by name
	URL                         string
	SSE                         bool // the address is one of HTTP+SSE
	Disabled                    bool
	Timeout                     time.Duration // of a call; 0 where the entry has none
	Off, On                     []string      // names of tools that are not used; of the only ones that are
	SignIn                      SignIn
	Client, Origin              string   // the id of the client; where the entry stands, for people
	Unanswered                  []string // ids of inputs that the client asks a person for
	Untaken                     []string // keys, and references, that mean nothing to the hub

	secrets []string // texts that are secrets wherever they stand
	project string   // directory of the one project that the entry is for: its client starts it there; "" for none
}

// SignIn is the client by which a server is signed in to, where one was registered by hand.
type SignIn struct {
	ID, Secret string
	Redirect   string // the address that the browser comes back to; "" where that is not known
	Scopes     []string
}

// like reports whether both are the same client. None is like any: it may have been registered since.
func (id SignIn) like(o SignIn) bool { return id.ID == o.ID || id.ID == "" || o.ID == "" }

// HomeDir as Server.Dir is the person's home directory. The hub gives it to servers without a
// directory, so that all clients can share them.
const HomeDir = "${userHome}"

// Same reports whether both servers run the same program in the same way, or reach the same
// address. Their names may differ. HomeDir and the project's directory count as no directory, and
// ${env:VAR} as ${VAR}.
func (s *Server) Same(o Server) bool {
	a, b := s.Dir, o.Dir
	if a == HomeDir || a == o.project && b == "" {
		a = ""
	}
	if b == HomeDir || b == s.project && a == "" {
		b = ""
	}
	return sameText(s.Command, o.Command) && sameText(a, b) && sameText(s.EnvFile, o.EnvFile) &&
		sameText(s.URL, o.URL) && s.SSE == o.SSE &&
		s.SignIn.like(o.SignIn) && slices.EqualFunc(s.Args, o.Args, sameText) &&
		slices.EqualFunc(s.Env, o.Env, func(a, b Pair) bool {
			return a.Name == b.Name &&
				sameText(a.Value, b.Value)
		}) &&
		slices.EqualFunc(s.Headers, o.Headers, func(a, b Pair) bool {
			return strings.EqualFold(a.Name, b.Name) &&
				sameText(a.Value, b.Value)
		})
}

var envReference = regexp.MustCompile(`(^|[^$])\$\{env:`)

// sameText reports whether two texts refer to the same variables, and are otherwise equal.
func sameText(a, b string) bool {
	plain := func(text string) string { return envReference.ReplaceAllString(text, "$1$${") }
	return a == b || plain(a) == plain(b)
}

// WorkDir returns the directory that a program runs in, as far as its entry says: its own, that of
// its project, or HomeDir where no text of it depends on one; otherwise "".
func (s *Server) WorkDir() string {
	texts := append([]string{s.Command}, s.Args...)
	switch {
	case s.Command == "" || s.Dir != "":
		return s.Dir
	case s.project != "":
		return s.project
	case s.EnvFile != "" || relativeProgram.MatchString(s.Command) ||
		slices.ContainsFunc(texts, relativeText.MatchString):
		return ""
	}
	return HomeDir
}

var (
	relativeProgram = regexp.MustCompile(`^[A-Za-z0-9_-]+[/\\]`)
	relativeText    = regexp.MustCompile(`^(--?[A-Za-z-]+=)?(\.|[A-Za-z0-9_-][^:@=]*\.([cm]?js|ts|py|rb|sh|` +
		`jar|json|ya?ml|toml|env|db|sqlite)$)|\$\{workspaceFolder`)
)

// IsHub reports whether the server runs mcp-toolhub serve: also through npx, with a version, as a
// line for a shell, or without the word serve. So does EntryName at an address of this machine:
// serve --http may have chosen any port.
func (s *Server) IsHub() bool {
	if u, err := url.Parse(s.URL); err == nil && s.Name == EntryName && strings.HasPrefix(u.Path+"/", "/mcp/") {
		ip := net.ParseIP(u.Hostname())
		return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	}
	words := append(strings.Fields(s.Command), strings.Fields(strings.Join(s.Args, " "))...)
	i := slices.IndexFunc(words, func(word string) bool {
		name, _, _ := strings.Cut(filepath.Base(strings.ReplaceAll(word, `\`, "/")), "@")
		return strings.TrimSuffix(name, ".exe") == program
	})
	return i >= 0 && (slices.Contains(words[i:], "serve") || i == len(words)-1 && !strings.ContainsAny(words[i], `/\`))
}

const program = "mcp-toolhub"

// reading returns the client as it reads the file at path.
func (c *Client) reading(path string) *Client {
	here := *c
	if at, err := filepath.Abs(path); err == nil {
		here.dir = filepath.Dir(at)
	}
	return &here
}

// Read returns the servers of a client's file. Their origins name it as path.
func (c *Client) Read(f *splice.File, path string) []Server {
	c = c.reading(path)
	all := c.entries(f, c.Place, c.Title+": "+path)
	if n := f.At(c.chosen); n != nil && c.chosen != "" {
		r := entryReader{node: n}
		off, on := r.plains("excluded"), r.plains("allowed")
		for i, s := range all {
			all[i].Disabled = s.Disabled || slices.Contains(off, s.Name) || len(on) > 0 && !slices.Contains(on, s.Name)
		}
	}
	if data, err := os.ReadFile(filepath.Join(filepath.Dir(path), c.enabling)); err == nil && c.enabling != "" &&
		c.ID != anyFile {
		if root, faults := textfile.ParseJSON(data); len(faults) == 0 {
			for i, s := range all {
				if n := root.Member(strings.ToLower(strings.TrimSpace(s.Name))); n != nil {
					r := entryReader{node: n}
					all[i].Disabled = s.Disabled || r.plain("enabled") == "false"
				}
			}
		}
	}
	for i := range all {
		c.followRules(f, &all[i])
	}
	for _, place := range c.projectPlaces(f) {
		project := place.Path[1]
		off := entryReader{node: f.At("projects", project)}
		for _, s := range c.entries(f, place, c.Title+", project "+project+": "+path) {
			s.Disabled = s.Disabled || slices.Contains(off.plains("disabledMcpServers"), s.Name)
			s.project = project
			all = append(all, s)
		}
	}
	return all
}

var notToolName = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// followRules leaves out the tools of a server that rules for the tools of all servers leave out.
// Of two rules the later one counts.
func (c *Client) followRules(f *splice.File, s *Server) {
	prefix := strings.Replace(c.toolNames, "*", notToolName.ReplaceAllString(s.Name, "_"), 1)
	noTool := false
	follow := func(pattern string, off bool) {
		tool, below := strings.CutPrefix(pattern, prefix)
		switch start, all := strings.CutSuffix(pattern, "*"); {
		case all && strings.HasPrefix(prefix, start):
			noTool, s.Off, s.On = off, nil, nil
		case below && off:
			s.Off = append(s.Off, tool)
		case below && noTool:
			s.On = append(s.On, tool)
		case below:
			s.Off = slices.DeleteFunc(s.Off, func(one string) bool { return one == tool })
		}
	}
	from := func(n *textfile.Node, offToo bool) {
		for _, key := range c.rules {
			rules := n.Member(key)
			if rules == nil {
				continue
			}
			for _, item := range rules.Items {
				follow(item.Text, true)
			}
			for _, m := range rules.Members {
				if off := m.Value.Text == "false" || m.Value.Text == "deny"; offToo || !off {
					follow(m.Key, off)
				}
			}
		}
	}
	from(f.Root, true)
	if agents := f.At("agent"); agents != nil { // OpenCode: what one of them uses is in use
		for _, agent := range agents.Members {
			from(agent.Value, false)
		}
	}
	s.Disabled = s.Disabled || noTool && len(s.On) == 0
}

// projectPlaces returns the places of the servers that the client has for single projects.
func (c *Client) projectPlaces(f *splice.File) (all []splice.Place) {
	projects := f.At("projects")
	if !c.projects || projects == nil {
		return nil
	}
	for _, p := range projects.Members {
		all = append(all, splice.Place{Path: []string{"projects", p.Key, "mcpServers"}})
	}
	return all
}

func (c *Client) entries(f *splice.File, p splice.Place, origin string) []Server {
	var all []Server
	found := f.Entries(p)
	for i, e := range found {
		if !p.List && slices.ContainsFunc(found[i+1:], func(later splice.Entry) bool { return later.Name == e.Name }) {
			continue // of two keys the last one counts
		}
		at := origin
		if f.Format != splice.TOML { // whose values have no places
			at += ":" + strconv.Itoa(e.Line)
		}
		if s := c.server(e); s != nil {
			s.Client, s.Origin = c.ID, at
			if c.ID == anyFile { // such as the .mcp.json of a project
				s.project = c.dir
			}
			all = append(all, *s)
		}
	}
	return all
}

// server reads an entry. It returns nil for one that is no MCP server, such as a built-in extension.
func (c *Client) server(e splice.Entry) *Server {
	r := entryReader{Client: c, node: e.Value, s: &Server{Name: e.Name}}
	s := r.s
	s.Command = r.text(cmp.Or(c.command, "command"))
	if env := e.Value.Member(cmp.Or(c.env, "env")); env != nil {
		r.env = env
	}
	s.Args = r.texts("args")
	for key, kind := range map[string]textfile.Kind{"args": textfile.List, cmp.Or(c.env, "env"): textfile.Mapping} {
		if n := e.Value.Member(key); n != nil && n.Kind != kind && n.Kind != textfile.Null {
			s.Untaken = append(s.Untaken, key)
		}
	}
	if c.argv {
		if words := r.texts("command"); len(words) > 0 {
			s.Command, s.Args = words[0], words[1:]
		}
	}
	r.env = nil
	if inner := e.Value.Member("command"); inner != nil && inner.Kind == textfile.Mapping { // Zed, until 2025
		old := entryReader{Client: c, node: inner, s: s}
		s.Command, s.Args, s.Env = old.text("path"), old.texts("args"), old.pairs("env")
	} else {
		s.Env = r.pairs(cmp.Or(c.env, "env"))
	}
	s.Dir, s.EnvFile = r.text("cwd"), r.text("envFile")
	s.URL = cmp.Or(r.text(c.url), r.text("url"), r.text("httpUrl"), r.text("serverUrl"))
	kind := strings.ToLower(r.plain("type"))
	s.SSE = s.URL != "" && (kind == "sse" || kind == "" && (strings.HasSuffix(s.URL, "/sse") || !c.isHTTP &&
		r.plain(c.url) == "" ||
		!c.isHTTP && c.sse == ""))
	s.Headers = r.pairs(slices.Concat(c.headers, []string{"headers"}[min(len(c.headers), 1):])...)
	r.codex()
	r.signIn()
	for _, name := range r.texts("env_keys") { // Goose: from the keyring
		s.Env = append(s.Env, Pair{name, "${" + name + "}"})
	}
	if c.references == listed && s.URL != "" {
		s.URL = s.filled(s.URL)
		for i, h := range s.Headers {
			s.Headers[i].Value = s.filled(h.Value)
		}
		s.Env = nil
	}
	byName := func(a, b Pair) int { return strings.Compare(a.Name, b.Name) }
	slices.SortStableFunc(s.Env, byName)
	slices.SortStableFunc(s.Headers, byName)
	s.Disabled = r.plain("disabled") == "true" || r.plain("enabled") == "false"
	s.Timeout = r.timeout()
	s.Off, s.On = r.plains(c.off), r.plains(c.on)
	if c.ID == anyFile { // whose client is not known, nor its words
		s.Off = slices.Concat(r.plains("disabledTools"), r.plains("disabled_tools"), r.plains("excludeTools"))
		if c.on != "includeTools" {
			s.On = slices.Concat(s.On, r.plains("includeTools"))
		}
	}
	if n := e.Value.Member(c.on); n != nil && n.Kind == textfile.List && len(n.Items) == 0 && !c.onEmpty {
		s.Disabled = true
	}
	if slices.Contains(s.On, "*") {
		s.On = nil
	}
	if s.Command == "" && s.URL == "" {
		return nil
	}
	return s
}

// escapedOrBare matches what may be a reference to a variable that the entry lists: translated has escaped ${VAR}.
var escapedOrBare = regexp.MustCompile(`\$\$\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}|\$([A-Za-z_][A-Za-z0-9_]*)`)

// filled returns a text with the values of the entry's variables in the place of references to them.
func (s *Server) filled(text string) string {
	return escapedOrBare.ReplaceAllStringFunc(text, func(reference string) string {
		m := escapedOrBare.FindStringSubmatch(reference)
		i := slices.IndexFunc(s.Env, func(p Pair) bool { return p.Name == m[1]+m[2] })
		if i < 0 {
			return reference
		}
		if value := s.Env[i].Value; secretName(s.Env[i].Name) && len(value) >= leastSecret &&
			!strings.Contains(value, "${") {
			s.secrets = append(s.secrets, value)
		}
		return s.Env[i].Value
	})
}

// ReadHub returns the servers of a config of the hub. It leaves references in their texts as they are.
func ReadHub(f *splice.File, path string) []Server {
	var all []Server
	for _, key := range []string{"mcpServers", "servers"} {
		c := Client{Title: "the hub's config", Place: at(key), spelling: spelling{url: "url", isHTTP: true,
			references: own}}
		all = append(all, c.Read(f, path)...)
	}
	return all
}

// entryReader reads the values of one entry.
type entryReader struct {
	*Client
	node *textfile.Node
	s    *Server
	env  *textfile.Node // while arguments are read: the entry's own variables
}

func (r *entryReader) plain(key string) string {
	if n := r.node.Member(key); n != nil && n.Kind != textfile.List && n.Kind != textfile.Mapping {
		return n.Text
	}
	return ""
}

func (r *entryReader) text(key string) string { return r.translated(r.plain(key)) }

func (r *entryReader) plains(key string) []string {
	var all []string
	n := r.node.Member(key)
	if n == nil {
		return nil
	}
	for _, item := range n.Items {
		all = append(all, item.Text)
	}
	return all
}

func (r *entryReader) texts(key string) []string {
	all := r.plains(key)
	for i, text := range all {
		all[i] = r.translated(text)
	}
	return all
}

func (r *entryReader) pairs(path ...string) []Pair {
	n := r.node
	for _, key := range path {
		if n = n.Member(key); n == nil {
			return nil
		}
	}
	var all []Pair
	for _, m := range n.Members {
		if m.Value.Kind != textfile.Null {
			all = append(all, Pair{m.Key, r.translated(m.Value.Text)})
		}
	}
	return all
}

// The hub's defaults, and the longest timeout that its config takes.
const (
	usualTimeout   = 30 * time.Minute
	usualStart     = 30 * time.Second
	longestTimeout = 24 * time.Hour
)

// span reads a time. A small number is one of seconds, as in the hub's config.
func (r *entryReader) span(key string) time.Duration {
	n, err := strconv.ParseFloat(r.plain(key), 64)
	if err != nil || n <= 0 || n > math.MaxInt32 {
		return 0
	}
	if n < 1000 || strings.HasSuffix(key, "_sec") {
		n *= 1000
	}
	return min(time.Duration(n)*time.Millisecond, longestTimeout)
}

// timeout returns how long a call may take. The hub's timeout bounds the start of a server, too:
// so it is no shorter than a long start that the entry allows.
func (r *entryReader) timeout() time.Duration {
	call := r.span(r.Client.spelling.timeout)
	if start := r.span("startup_timeout_sec"); start > usualStart {
		return max(cmp.Or(call, usualTimeout), start)
	}
	return call
}

// codex reads the keys that only Codex has.
func (r *entryReader) codex() {
	if name := r.plain("bearer_token_env_var"); name != "" {
		r.s.Headers = append(r.s.Headers, Pair{"Authorization", "Bearer ${" + name + "}"})
	}
	if n := r.node.Member("env_http_headers"); n != nil {
		for _, m := range n.Members {
			r.s.Headers = append(r.s.Headers, Pair{m.Key, "${" + m.Value.Text + "}"})
		}
	}
	if n := r.node.Member("env_vars"); n != nil {
		for _, item := range n.Items {
			name := item.Text
			if inner := item.Member("name"); inner != nil {
				name = inner.Text
			}
			r.s.Env = append(r.s.Env, Pair{name, "${" + name + "}"})
		}
	}
}

// signIn reads the client that was registered by hand.
func (r *entryReader) signIn() {
	for _, key := range []string{"oauth", "auth"} { // Cursor's is auth
		n := r.node.Member(key)
		if n == nil || n.Kind != textfile.Mapping {
			continue
		}
		inner := entryReader{Client: r.Client, node: n, s: r.s}
		r.s.SignIn = SignIn{ID: cmp.Or(inner.text("client_id"), inner.text("clientId"), inner.text("CLIENT_ID")),
			Secret:   cmp.Or(inner.text("client_secret"), inner.text("clientSecret"), inner.text("CLIENT_SECRET")),
			Redirect: cmp.Or(inner.plain("redirect"), inner.plain("redirectUri")),
			Scopes: slices.Concat(inner.plains("scopes"),
				strings.Fields(cmp.Or(inner.plain("scopes"), inner.plain("scope"))))}
		for key, host := range map[string]string{"callbackPort": "localhost", "callback_port": "127.0.0.1"} {
			if port := inner.plain(key); port != "" { // the first is Claude Code's
				r.s.SignIn.Redirect = "http://" + host + ":" + port + "/callback"
			}
		}
		if !onLoopback.MatchString(r.s.SignIn.Redirect) {
			r.s.SignIn.Redirect = ""
		}
	}
	if r.s.SignIn.ID == "" { // the hub registers itself
		r.s.SignIn = SignIn{}
	}
}

var (
	inBraces = regexp.MustCompile(`\$\{[^}]*\}?`)
	inCurly  = regexp.MustCompile(`\{(env|file):([^{}]+)\}`)
	dollar   = regexp.MustCompile(`\$([A-Za-z_][A-Za-z0-9_]*)`)
	known    = regexp.MustCompile(`^\$\{((env:)?[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?|` +
		`workspaceFolder|workspaceFolderBasename|` +
		`userHome|pathSeparator|/)\}$`)
	// isVariable matches a reference to a variable that does not say so by env:
	isVariable = regexp.MustCompile(`^\$\{[A-Za-z_][A-Za-z0-9_]*(:-.*)?\}$`)
	asked      = regexp.MustCompile(`^\$\{input:([^}]+)\}$`)
	onLoopback = regexp.MustCompile(`^http://(localhost|127\.0\.0\.1):\d+(/|$)`)
	secretOf   = regexp.MustCompile(`\$\{\{\s*secrets\.([A-Za-z0-9_-]+)\s*\}\}`) // Continue: kept by its own service
)

// translated rewrites the client's references to variables as references of the hub's config. It
// escapes every other ${.
func (r *entryReader) translated(text string) string {
	switch r.references {
	case own:
		return text
	case bare:
		text = dollar.ReplaceAllStringFunc(text, func(reference string) string {
			if r.isForProgram(reference[1:]) {
				return reference
			}
			return "${" + reference[1:] + "}"
		})
	case verbatim, listed:
		return inBraces.ReplaceAllString(text, "$$$0")
	case curly:
		return inCurly.ReplaceAllStringFunc(inBraces.ReplaceAllString(text, "$$$0"), func(reference string) string {
			m := inCurly.FindStringSubmatch(reference)
			// it starts where the client's file is
			if m[1] == "file" && !filepath.IsAbs(m[2]) && !strings.HasPrefix(m[2], "~/") {
				m[2] = filepath.Join(r.dir, m[2])
			}
			return "${" + m[1] + ":" + m[2] + "}"
		})
	}
	text = secretOf.ReplaceAllString(text, "$${input:$1}")
	return inBraces.ReplaceAllStringFunc(text, func(reference string) string {
		if m := asked.FindStringSubmatch(reference); m != nil {
			id := notName.ReplaceAllString(m[1], "-")
			r.s.Unanswered = append(r.s.Unanswered, id)
			return "${secret:" + id + "}"
		}
		if strings.HasPrefix(reference, "${config:") || strings.HasPrefix(reference, "${command:") { // VS Code's
			r.s.Untaken = append(r.s.Untaken, reference)
		}
		name := strings.Trim(reference, "${}")
		if !known.MatchString(reference) && !(r.files && strings.HasPrefix(reference, "${file:")) ||
			r.isForProgram(name) ||
			r.references == prefixed && isVariable.MatchString(reference) && !slices.Contains(ownReferences, name) {
			return "$" + reference
		}
		return reference
	})
}

// isForProgram reports whether the entry sets the variable of that name for its program: a
// reference to it in an argument is the program's to replace, as mcp-remote does.
func (r *entryReader) isForProgram(name string) bool {
	if r.env == nil {
		return false
	}
	value := r.env.Member(name)
	if value == nil || strings.HasPrefix(value.Text, "${"+name+":-") ||
		strings.HasPrefix(value.Text, "${env:"+name+":-") {
		return false
	}
	return !slices.Contains([]string{"$" + name, "${" + name + "}", "${env:" + name + "}"}, value.Text)
}

var notName = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)

// anyFile is the id and title of the row that Detect makes for a file of no client's own path.
const anyFile = "file"

// Detect finds the row of the table for a file, and reads the file. The row is that of the client
// whose path this is, otherwise the first that finds entries in the file; nil where none does.
func Detect(path string, e Env, read func(splice.Format) (*splice.File, error)) (*Client, *splice.File, error) {
	rows := All()
	for i, c := range rows {
		if slices.Contains(c.paths(e), path) {
			f, err := read(c.Format)
			return &rows[i], f, err
		}
	}
	format := map[string]splice.Format{".toml": splice.TOML, ".yaml": splice.YAML,
		".yml": splice.YAML}[strings.ToLower(filepath.Ext(path))]
	f, err := read(cmp.Or(format, splice.JSON))
	if err != nil {
		return nil, nil, err
	}
	ids := []string{"claude-code", "vscode", "codex", "zed", "opencode", "goose", "amp", "continue"}
	if id := ownWords(f); id != "" {
		ids = []string{id}
	}
	for _, id := range ids {
		if c := ByID(id); f.At(c.Place.Path...) != nil && (len(f.Entries(c.Place)) > 0 || c.projects &&
			f.At(c.Place.Path...).Kind != textfile.List) {
			c.Title, c.ID = anyFile, anyFile
			return c, f, nil
		}
	}
	return nil, f, nil
}
