package facts

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
)

// Bounds of reading a schema. What lies beyond them is unknown: arguments there are not declared.
const (
	maxSchemaDepth         = 12
	maxProperties          = 1000
	maxPropertyDescription = 600  // bytes of the description of one property
	maxEnum                = 200  // values of one enumeration
	maxReferences          = 60   // references looked up, each as often as the schema has 4 KiB
	maxWork                = 1000 // steps through schemas and references, of 4 KiB each: references can multiply
)

// schemaEvidence is the evidence of an input schema.
type schemaEvidence struct {
	evidence   evidence
	root       []byte
	work       int
	references int
	following  []string // references that lead to where reading is now
	arguments  []Argument
	properties int
	command    bool // takes a command
	code       bool // takes a program text
	queries    []property
	ends       []property // from where something goes, or to where
	declared   []string   // pointers of all properties
	sensitive  []string   // pointers of secrets
}

// whyStore is the reason of an argument that is a path, but not of a file system.
const whyStore = "a path in a repository or bucket"

// property is one property of a schema, as far as it is looked at.
type property struct {
	pointer     string
	words       []string
	name        string
	format      string
	types       string // "string", "boolean" …, or "" for several or none
	description string // lower case, cut
	has         enums
	writeOnly   bool
	remote      bool // stands beside the name of a repository or bucket
}

// enums are the values that a property may have.
type enums struct {
	any      bool
	evidence evidence // of those that begin with a verb
}

// readSchema reads an input schema.
func readSchema(schema []byte) schemaEvidence {
	var s schemaEvidence
	s.root = schema
	s.object(schema, "", 0, false)
	return s
}

// declaredSecrets appends JSON pointers to what a schema of results declares secret: "format":
// "password", or writeOnly.
func declaredSecrets(schema []byte, at string, depth int, found []string) []string {
	if !rawjson.IsObject(schema) || depth > maxSchemaDepth {
		return found
	}
	writeOnly, _ := rawjson.Get(schema, "writeOnly")
	if rawjson.Text(schema, "format") == "password" || string(writeOnly) == "true" {
		return append(found, at)
	}
	_ = rawjson.Members(rawjson.GetObject(schema, "properties"), func(m rawjson.Member) bool {
		found = declaredSecrets(m.Value, at+"/"+rawjson.PointerToken(m.Name()), depth+1, found)
		return true
	})
	items, _ := rawjson.Get(schema, "items")
	return declaredSecrets(items, at+"/*", depth+1, found)
}

// object reads the properties of a schema and of those that it is made of.
func (s *schemaEvidence) object(schema []byte, pointer string, depth int, remote bool) {
	s.work += 1 + len(schema)/4096
	if depth > maxSchemaDepth || s.work > maxWork {
		return
	}
	var properties []byte
	_ = rawjson.Members(schema, func(m rawjson.Member) bool {
		switch string(m.Key) {
		case "properties":
			properties = m.Value
		case "allOf", "anyOf", "oneOf":
			_ = rawjson.Elements(m.Value, func(v []byte) bool {
				s.object(v, pointer, depth+1, remote)
				return true
			})
		case "if", "then", "else", "additionalProperties":
			if rawjson.IsObject(m.Value) {
				s.object(m.Value, pointer, depth+1, remote)
			}
		case "items", "prefixItems":
			s.items(m.Value, pointer, depth, remote)
		case "$ref":
			s.reference(m.Value, pointer, depth, remote)
		}
		return true
	})
	if properties == nil {
		return
	}
	remote = remote || storeBeside(properties)
	_ = rawjson.Members(properties, func(m rawjson.Member) bool {
		s.properties++
		if s.properties > maxProperties {
			return false
		}
		p := s.property(m, pointer, remote)
		s.declared = append(s.declared, pointer+"/"+rawjson.PointerToken(p.name))
		s.judge(&p)
		s.object(m.Value, pointer+"/"+rawjson.PointerToken(p.name), depth+1, remote)
		return true
	})
}

// reference follows a reference. A recursive one says nothing new: its arguments are looked for one level deep.
func (s *schemaEvidence) reference(value []byte, pointer string, depth int, remote bool) {
	ref, _ := rawjson.String(value)
	if slices.Contains(s.following, ref) {
		return
	}
	schema, ok := s.at(ref)
	if !ok {
		return
	}
	s.following = append(s.following, ref)
	s.object(schema, pointer, depth+1, remote)
	s.following = s.following[:len(s.following)-1]
}

// at returns the part of the schema that a reference within it names.
func (s *schemaEvidence) at(ref string) ([]byte, bool) {
	rest, ok := strings.CutPrefix(ref, "#")
	if s.references += 1 + len(s.root)/4096; s.references > maxReferences {
		return nil, false
	}
	schema := s.root
	for step := range strings.SplitSeq(strings.TrimPrefix(rest, "/"), "/") {
		if step == "" || !ok {
			continue
		}
		schema, ok = rawjson.Get(schema, rawjson.PointerName(step))
	}
	return schema, ok
}

func (s *schemaEvidence) items(value []byte, pointer string, depth int, remote bool) {
	if rawjson.IsObject(value) {
		s.object(value, pointer+"/*", depth+1, remote)
		return
	}
	_ = rawjson.Elements(value, func(v []byte) bool {
		s.object(v, pointer+"/*", depth+1, remote)
		return true
	})
}

// storeBeside reports whether an object names a repository or bucket: paths beside it lie in there.
func storeBeside(properties []byte) bool {
	owner, repo, store := false, false, false
	_ = rawjson.Members(properties, func(m rawjson.Member) bool {
		switch string(m.Key) {
		case "owner", "org", "organization":
			owner = true
		case "repo", "repository":
			repo = true
		case "bucket", "bucket_name", "bucketName", "project_id", "projectId", "fileKey":
			store = true
		}
		return true
	})
	return owner && repo || store
}

func (s *schemaEvidence) property(m rawjson.Member, pointer string, remote bool) property {
	name := m.Name()
	p := property{name: name, words: split(name), remote: remote,
		pointer: pointer + "/" + rawjson.PointerToken(name)}
	var items []byte
	schema := m.Value
	if ref, ok := rawjson.Get(schema, "$ref"); ok {
		if text, isText := rawjson.String(ref); isText {
			if there, found := s.at(text); found {
				schema = there
			}
		}
	}
	_ = rawjson.Members(schema, func(m rawjson.Member) bool {
		switch string(m.Key) {
		case "type":
			p.types, _ = rawjson.String(m.Value)
		case "format":
			p.format, _ = rawjson.String(m.Value)
		case "description":
			value := m.Value
			if len(value) > maxPropertyDescription {
				value = value[:maxPropertyDescription]
			}
			p.description = strings.ToLower(string(value))
		case "writeOnly", "x-sensitive":
			p.writeOnly = p.writeOnly || string(m.Value) == "true"
		case "enum":
			p.has.read(m.Value)
		case "const":
			p.has.value(m.Value)
		case "items":
			items = m.Value
		}
		return true
	})
	if p.types == "array" && items != nil {
		p.pointer += "/*" // the elements name something; object adds its own
		if value, ok := rawjson.Get(items, "enum"); ok {
			p.has.read(value)
		}
		if value, ok := rawjson.Get(items, "format"); ok {
			p.format, _ = rawjson.String(value)
		}
		element, _ := rawjson.Get(items, "type")
		p.types, _ = rawjson.String(element)
		if p.types == "object" || p.types == "array" {
			p.types = "array"
		}
	}
	return p
}

func (e *enums) read(values []byte) {
	n := 0
	_ = rawjson.Elements(values, func(v []byte) bool {
		e.value(v)
		n++
		return n < maxEnum
	})
}

func (e *enums) value(value []byte) {
	text, ok := rawjson.String(value)
	if !ok || text == "" {
		return
	}
	e.any = true
	if words := split(text); len(words) > 0 {
		e.evidence.add(effectOf(words[0]), text, "it can be told to")
	}
}

// judge adds the evidence of one property, and its argument.
func (s *schemaEvidence) judge(p *property) {
	if len(p.words) == 0 {
		return
	}
	last, first := p.words[len(p.words)-1], p.words[0]
	if p.secret() {
		s.sensitive = append(s.sensitive, p.pointer)
	}
	if chooses(last) {
		for e := destroys; e <= executes; e++ {
			s.evidence[e] = cmp.Or(s.evidence[e], p.has.evidence[e])
		}
	}
	if p.types == "boolean" {
		s.evidence.add(effectOf(first), p.name, "it has the switch")
		return
	}
	if p.types == "number" || p.types == "integer" {
		if last == "id" || last == "number" {
			s.argue(p, ArgumentResource, "its name", false)
		}
		return
	}
	switch last {
	case "query", "statement", "q":
		s.queries = append(s.queries, *p)
	case "source", "src", "destination", "dest", "dst":
		s.ends = append(s.ends, *p)
	}
	s.argument(p, last)
}

// secret reports whether p holds a secret.
func (p *property) secret() bool {
	if p.format == "password" || p.writeOnly {
		return p.types != "boolean"
	}
	if p.types != "" && p.types != "string" && p.types != "object" && p.types != "array" {
		return false
	}
	return secret.Name(p.name) && !strings.Contains(p.description, "page token") &&
		!strings.Contains(p.description, "pagination")
}

// chooses reports whether a property whose name ends in word selects an action of the tool.
func chooses(word string) bool {
	switch word {
	case "action", "actions", "operation", "operations", "mode", "method", "command", "op", "cmd", "verb", "subcommand",
		"type",
		"task", "event":
		return true
	}
	return false
}

// argument adds p to the arguments if it names something outside the call.
func (s *schemaEvidence) argument(p *property, last string) {
	if p.types != "" && p.types != "string" && (p.types != "array" || !programs(last)) {
		return
	}
	kind, why := p.kind(last)
	if kind == "" {
		return
	}
	write := false
	switch kind {
	case ArgumentCommand:
		s.command = true
	case ArgumentCode:
		s.code = true
	case ArgumentPath:
		write = p.output()
	}
	s.argue(p, kind, why, write)
}

// argue adds an argument, once for all branches of a schema that declare it.
func (s *schemaEvidence) argue(p *property, kind, why string, write bool) {
	for i, a := range s.arguments {
		if a.Pointer == p.pointer && a.Kind == kind {
			s.arguments[i].Write = a.Write || write
			return
		}
	}
	s.arguments = append(s.arguments, Argument{Pointer: p.pointer, Kind: kind, Write: write, Origin: Inferred,
		Why: why})
}

// queriesAreCode makes the queries of a database tool program texts.
func (s *schemaEvidence) queriesAreCode() {
	for i := range s.queries {
		if p := &s.queries[i]; p.types == "string" || p.types == "" {
			s.code = true
			s.argue(p, ArgumentCode, "a query of a database", false)
		}
	}
}

// endsArePaths makes the sources and destinations of a tool for files paths.
func (s *schemaEvidence) endsArePaths() {
	for i := range s.ends {
		if p := &s.ends[i]; (p.types == "string" || p.types == "") && !p.remote && !p.otherPath() && !p.has.any {
			s.argue(p, ArgumentPath, "where a tool for files takes from or puts to", false)
		}
	}
}

// programs reports whether a value of the name is a program even where it is an array or object.
func programs(last string) bool {
	switch last {
	case "pipeline", "argv", "command", "commands", "cmd", "args":
		return true
	}
	return false
}

// kind returns the kind of argument that p is; "" if it names nothing outside the call.
func (p *property) kind(last string) (kind, why string) {
	if p.has.any {
		return "", "" // one of a few words
	}
	switch p.format {
	case "uri", "url", "iri", "uri-reference", "iri-reference":
		return ArgumentURL, "its format"
	case "hostname", "idn-hostname", "ipv4", "ipv6":
		return ArgumentHost, "its format"
	case "path", "file-path", "directory-path", "file", "directory":
		return ArgumentPath, "its format"
	}
	switch last {
	case "url", "urls", "uri", "uris", "href", "webhook", "website", "endpoint":
		return ArgumentURL, "its name"
	case "host", "hostname", "hosts", "domain", "domains":
		return ArgumentHost, "its name"
	case "command", "commands", "cmd", "argv", "shell":
		return ArgumentCommand, "its name"
	case "path", "paths", "file", "files", "filename", "filenames", "filepath", "filepaths", "dir", "dirs", "directory",
		"directories", "folder", "folders", "cwd", "workdir":
		return p.path(last)
	case "link", "dsn", "string":
		if strings.Contains(p.description, "url") || strings.Contains(p.description, "connection string") ||
			last == "dsn" {
			return ArgumentURL, "its description"
		}
	case "id", "ids", "uuid", "slug", "repo", "repository", "owner", "database", "collection", "table", "bucket",
		"channel",
		"project", "namespace", "key", "uid":
		if p.secret() {
			break // a target is shown, and remembered
		}
		return ArgumentResource, "its name"
	}
	if p.isCode(last) {
		return ArgumentCode, "its name"
	}
	return p.described()
}

// otherPath reports whether the paths that p speaks of are none of a file system.
func (p *property) otherPath() bool {
	return p.says("dot notation", "json path", "jsonpath", "xpath", "url path", "api path", "http path", "field path")
}

// path tells paths of files from other paths.
func (p *property) path(last string) (kind, why string) {
	if p.otherPath() {
		return "", ""
	}
	if p.remote && last != "cwd" && last != "workdir" && !p.output() {
		return ArgumentResource, whyStore
	}
	return ArgumentPath, "its name"
}

// isCode tells texts that are carried out from texts that only describe.
func (p *property) isCode(last string) bool {
	switch last {
	case "sql", "script", "javascript", "js", "snippet", "statement", "cypher", "pipeline", "function":
		return true
	case "expression":
		return !strings.Contains(p.description, "cron") && !strings.Contains(p.description, "regular")
	case "code":
		if len(p.words) > 1 && !slices.Contains(p.words, "source") {
			return strings.Contains(p.description, "execut") || strings.Contains(p.description, " run")
		}
		return !p.says("country", "language code", "iso", "currency", "status", "postal", "zip", "airport",
			"verification")
	case "query", "queries", "q", "mutation", "filter":
		return last == "mutation" || p.says("sql", "cypher", "graphql", "mutation", "execut")
	}
	return false
}

// described is kind by the description of p.
func (p *property) described() (kind, why string) {
	const why0 = "its description"
	switch {
	case p.description == "":
	case p.says("path to", "absolute path", "file path", "directory path", "path of the file"):
		if !p.remote && !p.otherPath() {
			return ArgumentPath, why0
		}
	case p.says("sql query", "sql statement", "javascript code", "code to execute", "code to run", "python code"):
		return ArgumentCode, why0
	case p.says("shell command", "command to execute", "command to run"):
		return ArgumentCommand, why0
	case p.says("url of", "url to", "repository url"):
		return ArgumentURL, why0
	}
	return "", ""
}

// output reports whether p names a file or directory that the tool writes to.
func (p *property) output() bool {
	writes := []string{"output", "out", "save", "dest", "destination", "target", "export", "download", "local"}
	return slices.ContainsFunc(p.words, func(w string) bool { return slices.Contains(writes, w) }) ||
		p.says("to save", "save to", "saved to", "written to", "write to", "to write", "will be saved", "to store",
			"save the",
			"save result", "save output", "output file")
}

// says reports whether the description of p holds one of the phrases.
func (p *property) says(phrases ...string) bool {
	return slices.ContainsFunc(phrases, func(phrase string) bool { return strings.Contains(p.description, phrase) })
}

// Undeclared returns the kind of an argument that the tool's schema does not declare, by its name
// and its value as a string; "" if it names nothing outside the call. Schemas are often open, and a
// few name no argument at all.
func Undeclared(name, value string) string {
	p := property{name: name, words: split(name)}
	if len(p.words) > 0 {
		if kind, _ := p.kind(p.words[len(p.words)-1]); kind != "" {
			return kind
		}
	}
	value = strings.TrimFunc(value, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) ||
			unicode.Is(unicode.Cf, r)
	})
	switch {
	case isAddress(value):
		return ArgumentURL
	case strings.HasPrefix(value, "/"), strings.HasPrefix(value, "~/"), strings.HasPrefix(value, `\\`):
		return ArgumentPath
	}
	return ""
}

// isAddress reports whether a program could read text as an address. Programs that follow the URL
// Standard drop tabs and line breaks, and need no slash behind the schemes that they know.
func isAddress(text string) bool {
	isSpaced := strings.ContainsAny(text, " \n")
	text = strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(text)
	scheme, rest, ok := strings.Cut(text, ":")
	if !ok {
		return false
	}
	switch strings.ToLower(scheme) {
	case "http", "https", "ws", "wss", "ftp", "file":
		return rest != "" && (rest[0] == '/' || rest[0] == '\\' || !strings.Contains(rest, " "))
	}
	return strings.Contains(text, "://") && !isSpaced
}
