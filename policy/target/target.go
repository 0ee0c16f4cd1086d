// Package target finds the targets of a call: the paths, URLs, hosts, commands and resources that
// its arguments name. Each is normalised, so that two spellings of one thing are equal. Policy
// judges the targets, and grants are bound to them.
//
// An argument that cannot be normalised is a target with a Fault, and within no scope: a target
// must not vanish because it is written oddly. Where programs read one text in two ways, there are
// two targets, or a Fault.
//
// A file system may change between check and use. Code that opens a path itself calls PathsOf
// again, or better OpenDir, MakeDir and OpenIn, which go by descriptor and follow no link. An MCP
// server opens its paths itself: for it, a target holds at the moment of the decision and no
// longer.
//
// The package follows no redirect and asks no name server: that is left to the code that makes the connection.
package target

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
)

// Kind is the kind of a target.
type Kind string

const (
	Path     Kind = "path"
	URL      Kind = "url" // or a host alone
	Command  Kind = "command"
	Resource Kind = "resource"
)

// Target is one target of a call.
type Target struct {
	Kind     Kind   `json:"kind"`
	Argument string `json:"argument"` // JSON pointer into the arguments
	Given    string `json:"given"`    // as the caller wrote it; long ones are cut

	// Resolved is the target in its one spelling. Of a path: absolute, clean, every link followed
	// as far as the path exists. Of a URL: scheme, host, port and path. Of a command: its words. Of
	// a resource: the id.
	Resolved string `json:"resolved"`

	// lower case, ASCII, no trailing dot; IP addresses in their usual form
	Host       string `json:"host,omitempty"`
	Executable string `json:"executable,omitempty"` // "" where it cannot be told, which is any program
	// the name by which the executable is called, where that is not its own: some go by it
	As     string `json:"as,omitempty"`
	Write  bool   `json:"write"`            // the call may write there
	Remote bool   `json:"remote,omitempty"` // a path on another machine: nothing here was looked at
	Notes  []Note `json:"notes,omitempty"`  // what is odd about it, for the person who is asked
	// why it has no one spelling; then Resolved says as much as is known
	Fault string `json:"fault,omitempty"`
}

// Has reports whether the target carries the note.
func (t *Target) Has(n Note) bool { return slices.Contains(t.Notes, n) }

// Note is something odd about a target.
type Note string

const (
	Symlink Note = "symlink" // a link was followed
	Lexical Note = "lexical" // what the path is for programs that take ".." before they follow links
	// what the path is for programs that take white space away, stop at a NUL character, or read
	// file URLs
	Trimmed     Note = "trimmed"
	Missing     Note = "missing"       // does not exist yet
	HardLink    Note = "hard_link"     // the file has other names, which may lie anywhere
	Special     Note = "special_file"  // a device, pipe or socket
	CaseTwin    Note = "case_twin"     // a name that differs in letter case only is there
	UnicodeTwin Note = "unicode_twin"  // a name that is the same text in other code points is there
	Wildcard    Note = "wildcard"      // may stand for several paths
	Unseen      Note = "unseen"        // the hub may not look there
	OutOfBounds Note = "out_of_bounds" // a command that is to run outside of the directories in which commands may run
	Home        Note = "home"          // "~" was expanded, which not every program does

	UserInfo   Note = "userinfo"    // the URL holds a user name or password
	OddIP      Note = "odd_ip"      // an IP address in an unusual spelling
	IDN        Note = "idn"         // a name with letters beyond ASCII
	Loopback   Note = "loopback"    // the machine itself
	Private    Note = "private"     // a private, shared or unique local address, or a name that is only valid inside
	LinkLocal  Note = "link_local"  // among them the metadata services of clouds
	NoScheme   Note = "no_scheme"   // https was assumed
	ShellText  Note = "shell"       // a text for a shell: it may run anything
	Wrapper    Note = "wrapper"     // a program whose arguments are another command
	Code       Note = "code"        // a program text
	KeyVariant Note = "key_variant" // the key is spelled like an argument but for letter case
	Undeclared Note = "undeclared"  // the schema does not know the argument
)

// Root is the place where the paths of a call start.
type Root struct {
	Dir    string // absolute: the working directory of the program that opens the paths; "" where that is not known
	Home   string // what "~" stands for; "" where that is not known
	Remote bool   // paths are those of another machine: they are cleaned, and nothing is looked up
	Inside bool   // to read what is outside of Dir, and of what may be written to, is asked about

	real  string   // Dir with every link followed; "" where NewRoot has not made it
	write []string // directories that may be written to, resolved; nil: Dir
}

// NewRoot returns the root of calls whose paths are opened on this machine. It follows the links in
// dir once, not for each call, so a new root is needed when dir may lead elsewhere.
func NewRoot(dir, home string) Root {
	r := Root{Dir: dir, Home: home}
	if filepath.IsAbs(dir) {
		r.Dir = filepath.Clean(dir)
		r.real = realDir(r.Dir)
	}
	return r
}

// Writing returns the root with dirs, absolute, as the directories that calls may write to, in the place of Dir.
func (r Root) Writing(dirs ...string) Root {
	r.write = make([]string, 0, len(dirs))
	for _, dir := range dirs {
		if real := realDir(filepath.Clean(dir)); real != "" {
			r.write = append(r.write, real)
		}
	}
	return r
}

// start returns the directory from which full is followed, and the rest: the root's real directory
// if full lies in it, otherwise the top of the file system.
func (r Root) start(full string) (at, rest string) {
	if r.real != "" {
		rest, ok := strings.CutPrefix(full, r.Dir)
		whole := rest == "" || os.IsPathSeparator(rest[0]) || os.IsPathSeparator(r.Dir[len(r.Dir)-1])
		if ok && whole {
			return r.real, rest
		}
	}
	volume := filepath.VolumeName(full)
	return volume + string(filepath.Separator), full[len(volume):]
}

// dir is the real directory of the root; "" where it is not known.
func (r Root) dir() string {
	if r.real != "" {
		return r.real
	}
	return realDir(r.Dir)
}

// Plan says which arguments of one tool are targets. It is immutable and safe for concurrent use.
type Plan struct {
	arguments []argument
	declared  map[string]bool // names of the schema's own properties
	facts     *facts.Facts
	write     bool
}

type argument struct {
	facts.Argument
	steps []string // of the pointer, unescaped
}

// Find returns the plan of the tool that f is about. It is made once per tool.
func Find(f *facts.Facts) *Plan {
	p := &Plan{declared: make(map[string]bool), facts: f, write: !f.ReadOnly.Value}
	for _, a := range f.Arguments {
		steps := strings.Split(strings.TrimPrefix(a.Pointer, "/"), "/")
		for i, s := range steps {
			steps[i] = rawjson.PointerName(s)
		}
		p.arguments = append(p.arguments, argument{a, steps})
		p.declared[steps[0]] = true
	}
	properties, _ := rawjson.Get(f.Schema(), "properties")
	_ = rawjson.Members(properties, func(m rawjson.Member) bool {
		p.declared[m.Name()] = true
		return true
	})
	return p
}

// Shown returns t without its secrets, for people and records. Nothing is decided by it.
func (t *Target) Shown() Target {
	out := *t
	out.Given, out.Resolved = secret.Text(t.Given, t.Kind == Command), secret.Text(t.Resolved, t.Kind == Command)
	return out
}
