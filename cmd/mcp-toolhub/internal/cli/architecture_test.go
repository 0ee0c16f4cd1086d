package cli

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const modulePath = "github.com/mcp-toolhub/mcp-toolhub"

// mayImport is the direction of imports: package to the packages of this module that its code may import, with the
// reason. Tests may import more, but for packages above their own.
var mayImport = map[string]map[string]string{
	"internal/tool":    {"internal/rawjson": "reads what an agent says of itself"},
	"internal/glob":    {},
	"internal/rawjson": {},
	"internal/hidden":  {},
	"internal/secret": {
		"internal/rawjson": "masks strings of raw JSON",
		"internal/hidden":  "control characters divide no secret",
	},
	"internal/budget":    {},
	"internal/spool":     {},
	"internal/run":       {},
	"internal/parallel":  {},
	"internal/queue":     {},
	"internal/seal":      {"internal/statefile": "writes key files"},
	"internal/ipaddr":    {},
	"internal/connuser":  {},
	"internal/textfile":  {},
	"internal/shape":     {"internal/textfile": "files are trees, and faults have places there"},
	"internal/statefile": {},
	"internal/inode":     {},
	"internal/splice":    {"internal/textfile": "reads a file before and after each change, and words faults"},
	"internal/secrets": {
		"internal/seal":      "secrets are sealed",
		"internal/statefile": "writes the file",
	},
	"internal/paramheader": {"internal/rawjson": "reads schemas and arguments"},
	"internal/schema": {
		"internal/hidden":  "cuts texts of others",
		"internal/tool":    "digests are the key of its cache",
		"internal/rawjson": "reads schemas and arguments as they are written",
	},
	"internal/jsonrpc": {
		"internal/rawjson": "finds the members of a message",
		"internal/tool":    "error objects and their codes",
		"internal/budget":  "large messages take room",
	},
	"internal/sessionid": {
		"internal/seal":      "ids are sealed",
		"internal/statefile": "writes its record",
	},
	"upstream/internal/settings": {"internal/secret": "what of an entry may be secret"},
	"upstream/signin": {
		"internal/tool":              "sign-ins are a part of a server's status",
		"internal/seal":              "the file of sign-ins is sealed",
		"internal/statefile":         "writes it, and lets one process at a time renew a token",
		"internal/ipaddr":            "strangers name no addresses of this network",
		"internal/secret":            "what authorization servers say is shown to people",
		"internal/hidden":            "likewise: on one line",
		"internal/rawjson":           "tells answers with tokens from other texts",
		"upstream/internal/settings": "how an entry wants to sign in",
	},
	"upstream/internal/fault": {
		"internal/tool":              "failures of calls",
		"upstream/signin":            "tells a sign-in that is needed from other failures",
		"internal/secret":            "faults hold no secrets",
		"upstream/internal/settings": "faults name commands and URLs of an entry",
	},
	"upstream/internal/lists": {"internal/rawjson": "takes pages apart"},
	"upstream/internal/admit": {
		"internal/tool":              "tools, exclusions and repairs",
		"internal/rawjson":           "declarations stay as the server wrote them",
		"internal/schema":            "refuses schemas that do not compile",
		"internal/hidden":            "finds hidden characters in descriptions",
		"internal/paramheader":       "arguments that travel as headers",
		"upstream/internal/lists":    "the lists that are judged",
		"internal/secret":            "reasons hold no secrets",
		"upstream/internal/settings": "limits of an entry",
	},
	"upstream/internal/wait": {},
	"upstream/internal/child": {
		"internal/run":               "starts and ends programs",
		"upstream/internal/fault":    "says why a program does not start",
		"internal/secret":            "stderr is logged",
		"internal/hidden":            "causes are short",
		"upstream/internal/settings": "the command of an entry",
		"upstream/internal/wait":     "waits for pipes to be read",
	},
	"upstream/internal/transport": {
		"internal/tool":              "failures of calls whose responses are too large",
		"internal/rawjson":           "capabilities stay as the server wrote them",
		"internal/jsonrpc":           "lines, events and messages",
		"internal/budget":            "bounds the memory of large messages",
		"upstream/internal/fault":    "says why a server cannot be reached",
		"internal/secret":            "URLs without credentials",
		"upstream/internal/settings": "URL, headers and limits of an entry",
		"upstream/internal/wait":     "signals",
	},
	"upstream/internal/hop": {
		"internal/tool":              "what a client said of itself",
		"internal/rawjson":           "params stay as the client wrote them",
		"internal/paramheader":       "names that a header cannot hold",
		"upstream/internal/settings": "the hub's name",
	},
	"upstream": {
		"upstream/internal/hop":       "writes params and capabilities",
		"upstream/internal/transport": "moves messages",
		"upstream/signin":             "has the tokens of servers",
		"upstream/internal/child":     "starts and ends the programs of servers",
		"internal/run":                "how long the output of a program that has ended is read",
		"upstream/internal/wait":      "waits for connections to end",
		"upstream/internal/admit":     "makes catalogs of what servers list",
		"upstream/internal/lists":     "the lists of a server",
		"upstream/internal/fault":     "says why a server is not ready",
		"internal/secret":             "what servers say passes through it",
		"internal/hidden":             "what servers say is cut, and on one line",
		"upstream/internal/settings":  "the settings of one server",
		"internal/tool":               "admits tools and executes calls in the hub's vocabulary",
		"internal/rawjson":            "lanes carry raw JSON",
		"internal/budget":             "bounds the memory of large messages",
		"internal/jsonrpc":            "reads, writes and frames messages",
		"internal/paramheader":        "arguments that travel as headers",
	},
	"namespace": {
		"internal/hidden":   "names and instructions without hidden characters",
		"internal/tool":     "turns catalogs into surfaces",
		"internal/rawjson":  "writes shown names into raw declarations",
		"internal/parallel": "many tools on all processors",
		"internal/glob":     "patterns of profiles",
	},
	"policy": {
		"internal/hidden":    "cuts texts of others",
		"internal/tool":      "decisions are records",
		"internal/rawjson":   "conditions read raw arguments",
		"internal/glob":      "patterns of rules",
		"internal/textfile":  "files of rules, grants and test calls",
		"internal/shape":     "tables of what these may hold",
		"internal/statefile": "writes the file of grants",
		"internal/secret":    "grants hold no secrets",
		"policy/facts":       "rules are about what tools can do",
		"policy/target":      "rules and grants are about what calls are aimed at",
	},
	"policy/approval": {
		"internal/tool": "questions are about invocations",
		"policy":        "answers are its choices",
	},
	"policy/gate": {
		"internal/hidden":  "characters that nobody sees stand as code points",
		"internal/tool":    "what is known of calls",
		"internal/secret":  "people see no secrets",
		"internal/rawjson": "masks raw arguments",
		"policy":           "its engine",
		"policy/facts":     "of tools",
		"policy/target":    "of calls",
	},
	"policy/history": {
		"internal/tool":    "reads the records of decisions",
		"internal/rawjson": "arguments stay raw",
		"policy":           "suggests its rules",
		"policy/gate":      "decides about recorded calls",
		"policy/target":    "what calls were aimed at",
	},
	"policy/hook": {
		"internal/tool":    "what is known of calls",
		"internal/rawjson": "arguments and results stay raw",
		"policy":           "hooks match like rules, and have expressions over calls",
	},
	"policy/facts": {
		"internal/secret":  "which arguments are secret by their names",
		"internal/glob":    "patterns of overrides",
		"internal/tool":    "facts are about tools, and become records",
		"internal/rawjson": "reads annotations and schemas",
	},
	"policy/target": {
		"internal/hidden":  "cuts texts of others",
		"internal/secret":  "targets are shown without secrets",
		"policy/facts":     "which arguments name something outside is a fact about the tool",
		"internal/ipaddr":  "where hosts of calls lie",
		"internal/inode":   "how many names a file has",
		"internal/tool":    "findings ask or deny, in the vocabulary's words",
		"internal/rawjson": "reads raw arguments",
	},
	"deferred": {
		"internal/hidden":   "cuts texts of others",
		"internal/glob":     "patterns of what is always loaded",
		"internal/tool":     "splits surfaces, executes tool_search",
		"internal/rawjson":  "reads raw declarations",
		"internal/parallel": "many tools on all processors",
		"internal/textfile": "the server that was meant",
		"deferred/search":   "the ranking",
	},
	"deferred/search": {"internal/rawjson": "reads schemas for their words", "internal/textfile": "how far two words are apart"},
	"deferred/embed":  {"deferred/search": "is its Meaning", "internal/statefile": "keeps vectors"},
	"deferred/eval":   {"deferred/search": "is what it measures"},
	"persist": {"internal/tool": "the journal holds records", "internal/rawjson": "checks raw members", "internal/secret": "records hold no secrets",
		"internal/statefile": "writes catalogs and the identity"},
	"persist/limit":   {"internal/tool": "rules are those of surfaces", "internal/glob": "patterns of settings"},
	"persist/payload": {"internal/tool": "ids and digests of results", "internal/statefile": "writes entries"},
	"persist/preview": {"internal/rawjson": "reads results as they are written", "internal/textfile": "words counts"},
	"persist/slice": {
		"internal/rawjson":  "reads results as they are written",
		"internal/textfile": "words counts",
		"persist/preview":   "content blocks, sizes and shapes are those of previews",
	},
	"persist/evidence": {
		"internal/tool":      "the kinds of records",
		"internal/rawjson":   "lines as they are written",
		"internal/seal":      "makes the key",
		"internal/statefile": "one process extends the chains at a time",
		"persist":            "the files of the journal",
	},
	"persist/store": {
		"internal/tool":    "records are the vocabulary's objects",
		"internal/rawjson": "the words of JSON texts",
		"internal/glob":    "patterns that columns match",
		"persist":          "is filled from the journal",
	},
	"persist/eraser": {
		"internal/tool":    "ids of calls",
		"internal/rawjson": "finds erasures that have begun",
		"persist":          "records the erasure",
		"persist/evidence": "erases in the journal and its chains",
		"persist/store":    "erases in the record store",
		"persist/payload":  "erases stored results",
	},
	"cmd/mcp-toolhub/internal/code": {
		"internal/hidden":                  "cuts texts of others",
		"internal/tool":                    "is an executor with a catalog",
		"internal/rawjson":                 "reads raw arguments",
		"internal/schema":                  "arguments are as the declarations say",
		"policy/target":                    "writes where a path led when that was permitted, and knows sensitive paths by its globs",
		"cmd/mcp-toolhub/internal/command": "runs commands",
		"internal/inode":                   "a file that is written keeps its owner and names",
	},
	"cmd/mcp-toolhub/internal/command": {
		"internal/hidden": "cuts texts of others",
		"internal/secret": "which variables have secrets",
		"internal/tool":   "progress and failures of calls",
		"internal/run":    "starts and ends programs",
	},
	"cmd/mcp-toolhub/internal/declarative": {
		"internal/hidden":                  "cuts texts of others",
		"internal/tool":                    "is an executor with a catalog",
		"internal/rawjson":                 "reads arguments and what commands print",
		"internal/schema":                  "refuses files whose schemas do not compile",
		"internal/textfile":                "reads files",
		"internal/shape":                   "a table of what these may hold",
		"cmd/mcp-toolhub/internal/command": "runs commands",
	},
	"cmd/mcp-toolhub/internal/demo":    {},
	"cmd/mcp-toolhub/internal/service": {},
	"cmd/mcp-toolhub/internal/clients": {
		"internal/splice":    "changes files of clients",
		"internal/secret":    "finds secrets in what they hold, and says which names have some",
		"internal/inode":     "they keep owner and names",
		"internal/run":       "a command of a client that hangs ends with all that it has started",
		"internal/textfile":  "their entries are trees, and their faults have places",
		"internal/statefile": "writes the record of connections",
		"internal/shape":     "writes durations as the hub's config has them",
	},
	"cmd/mcp-toolhub/internal/invoke": {
		"internal/hidden":  "cuts texts of others",
		"internal/secret":  "masks what is recorded of calls",
		"internal/glob":    "patterns of rates",
		"internal/tool":    "invocations are the vocabulary's objects",
		"internal/rawjson": "arguments and results stay raw",
		"internal/schema":  "phase parse_schema",
		"internal/seal":    "digests of inputs with secrets are keyed",
		"policy":           "phase permission",
		"persist":          "the journal comes before the answer",
		"persist/payload":  "large results are stored before the answer, too",
		"persist/preview":  "what a caller gets in place of a large result",
		"policy/approval":  "asks people",
		"policy/gate":      "what a decision is about",
		"policy/hook":      "phases pre_hooks and post_hooks",
		"policy/facts":     "which arguments are recorded masked",
		"policy/target":    "tells executors which paths were permitted",
	},
	"cmd/mcp-toolhub/internal/batch": {
		"internal/tool":                   "is a tool of the hub",
		"internal/rawjson":                "arguments and results stay raw",
		"cmd/mcp-toolhub/internal/invoke": "its calls go through the pipeline",
		"persist/slice":                   "arguments come from results by JSON pointers",
	},
	"cmd/mcp-toolhub/internal/lookup": {
		"deferred":                           "the name of the search",
		"deferred/search":                    "questions that led to tools",
		"cmd/mcp-toolhub/internal/console":   "the story as its page shows it",
		"cmd/mcp-toolhub/internal/invoke":    "the classes of errors",
		"cmd/mcp-toolhub/internal/telemetry": "the spans of a call",
		"internal/glob":                      "patterns in flags",
		"internal/tool":                      "the objects that tell the story",
		"persist":                            "derives the objects",
		"persist/store":                      "where calls are found",
		"policy/history":                     "reads what was decided",
	},
	"cmd/mcp-toolhub/internal/results": {
		"internal/tool":    "is a tool of the hub",
		"internal/rawjson": "writes answers",
		"internal/budget":  "large results take room",
		"persist/payload":  "the store",
		"persist/slice":    "parts of results",
	},
	"cmd/mcp-toolhub/internal/downstream": {
		"internal/queue":                  "holds what waits for a slow reader",
		"internal/spool":                  "slow clients take large results from the disk",
		"internal/jsonrpc":                "reads, writes and frames messages",
		"internal/tool":                   "surfaces and errors",
		"internal/rawjson":                "lanes carry raw JSON",
		"cmd/mcp-toolhub/internal/invoke": "every call goes through the pipeline",
		"internal/sessionid":              "ids of sessions are carried by clients",
		"internal/secret":                 "callers elsewhere see no paths in the hub's health",
		"internal/paramheader":            "arguments that travel as headers",
		"internal/connuser":               "without tokens, other users of the machine are refused",
		"cmd/mcp-toolhub/internal/downstream/internal/suspended": "so is requestState",
	},
	"cmd/mcp-toolhub/internal/downstream/internal/suspended": {
		"internal/tool":    "failures and errors",
		"internal/rawjson": "arguments stay raw",
		"internal/seal":    "requestState is carried by clients",
	},
	"cmd/mcp-toolhub/internal/login": {
		"internal/tool":    "is asked for calls that need a sign-in",
		"internal/rawjson": "writes questions to clients",
		"upstream":         "the entries of servers",
		"upstream/signin":  "signs in",
	},
	"cmd/mcp-toolhub/internal/telemetry": {
		"internal/tool":                   "names of tools, states of servers",
		"internal/rawjson":                "the context of a trace stands in raw _meta",
		"cmd/mcp-toolhub/internal/invoke": "observes its calls",
	},
	"cmd/mcp-toolhub/internal/control": {
		"cmd/mcp-toolhub/internal/telemetry": "spans of the read model",
		"internal/tool":                      "servers and surfaces of the read model",
		"policy":                             "remembered answers",
		"policy/approval":                    "questions and answers",
	},
	"cmd/mcp-toolhub/internal/console": {
		"internal/tool":                    "servers and calls of the page",
		"internal/rawjson":                 "forms are made of raw schemas",
		"internal/hidden":                  "makes what strangers hide visible",
		"internal/statefile":               "keeps passkeys",
		"policy/history":                   "suggested rules",
		"policy":                           "choices of answers",
		"policy/approval":                  "questions and answers",
		"policy/gate":                      "how texts of strangers are shown to people",
		"persist/store":                    "calls are looked up by its columns",
		"cmd/mcp-toolhub/internal/control": "shows the hub's read model",
	},
	"cmd/mcp-toolhub/internal/relay": {
		"internal/jsonrpc": "reads and frames messages",
		"internal/rawjson": "messages stay raw",
		"internal/tool":    "errors",
	},
	"cmd/mcp-toolhub/internal/events": {
		"internal/tool":    "events are the vocabulary's",
		"internal/rawjson": "objects of the journal stay raw",
		"persist":          "reads the journal",
		"policy":           "options of a question are its choices",
	},
	"cmd/mcp-toolhub/internal/config": {
		"internal/secret":                      "which entries have credentials, and what is shown of them",
		"upstream":                             "its Config",
		"upstream/signin":                      "the path that sign-ins come back to",
		"namespace":                            "its Profile",
		"persist":                              "its JournalConfig",
		"persist/limit":                        "its Config",
		"persist/payload":                      "its Config",
		"cmd/mcp-toolhub/internal/code":        "its Config",
		"cmd/mcp-toolhub/internal/command":     "its Config",
		"cmd/mcp-toolhub/internal/declarative": "its Config",
		"deferred":                             "its Config",
		"deferred/embed":                       "its Config",
		"cmd/mcp-toolhub/internal/downstream":  "its Config",
		"cmd/mcp-toolhub/internal/console":     "the words of its settings",
		"internal/glob":                        "patterns of rules",
		"internal/textfile":                    "reads files, and words faults",
		"internal/shape":                       "tables of what the file may hold",
		"internal/statefile":                   "writes the records of trust",
		"internal/secrets":                     "what ${secret:NAME} stands for",
		"internal/connuser":                    "warns where every user of the machine can call",
		"internal/tool":                        "behaviors of rules",
		"policy":                               "its rules and modes",
		"policy/facts":                         "its overrides",
		"policy/target":                        "its limits",
		"policy/gate":                          "its Config",
		"policy/hook":                          "its Config",
	},
}

// onTop may import everything: it introduces the packages to each other.
var onTop = map[string]bool{"cmd/mcp-toolhub": true, "cmd/mcp-toolhub/internal/cli": true, "cmd/mcp-toolhub/internal/hub": true}

// testOnly are packages that tests alone may import.
var testOnly = map[string]bool{"upstream/upstreamtest": true, "persist/store/storetest": true}

func TestImportDirections(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..", "..")
	page := readFile(t, filepath.Join(root, "docs", "architecture.md"))
	seen := make(map[string]bool)
	walkGo(t, root, func(pkg, file string) {
		seen[pkg] = true
		checkFile(t, pkg, file)
	})
	for pkg := range seen {
		if _, ok := mayImport[pkg]; !ok && !onTop[pkg] && !testOnly[pkg] {
			t.Errorf("package %s is in no row of this test: add it, with the reason for each import", pkg)
		}
		if !strings.Contains(page, "| `"+pkg+"` |") {
			t.Errorf("package %s is in no row of the table in docs/architecture.md", pkg)
		}
	}
	for pkg := range mayImport {
		if !seen[pkg] {
			t.Errorf("package %s has a row in this test but no code", pkg)
		}
	}
}

// walkGo calls visit with each Go file below root and the package that it belongs to, testdata aside.
func walkGo(t *testing.T, root string, visit func(pkg, file string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(file, ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		visit(filepath.ToSlash(rel), file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func checkFile(t *testing.T, pkg, file string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Errorf("%s: %v", file, err)
		return
	}
	test := strings.HasSuffix(file, "_test.go") || testOnly[pkg]
	for _, spec := range f.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		to, ours := strings.CutPrefix(imported, modulePath+"/")
		if !ours || onTop[pkg] {
			continue
		}
		_, allowed := mayImport[pkg][to]
		switch {
		case testOnly[to] && !test:
			t.Errorf("%s imports %s, which is for tests", file, to)
		case !allowed && !test:
			t.Errorf("%s imports %s: that is not its direction; see mayImport for what is", file, to)
		case test && onTop[to] && !onTop[pkg]:
			t.Errorf("%s imports %s from below", file, to)
		}
	}
}
