// Package upstreamtest holds scripted fake MCP servers for tests: a child process that speaks
// stdio, and an HTTP handler that speaks Streamable HTTP or HTTP+SSE. They write raw JSON and use
// no SDK, so that a test sees what goes over the wire. All of them obey the same Script and know
// the same tools:
//
//	echo      the request's params, byte for byte, as structuredContent.params
//	raw       {"result": R}: answers with R, byte for byte
//	fail      {"error": E}: answers with the JSON-RPC error E, byte for byte
//	answer    {"text": T}: sends the text T as it is, with $ID replaced by the request's id, $BAD by a byte that is not
//	          UTF-8, and $LONG by more than a megabyte of text
//	progress  {"n": N}: N progress reports {"progressToken","progress","total","message","x"}, then a result
//	sleep     {"ms": M}: a result after M milliseconds, unless canceled
//	hang      no answer;
//	          {"begin": true} reports progress first; {"then": "finish" or "fail"} answers so once it was canceled
//	die       ends the process, or breaks the connection
//	big       {"bytes": B}: a result with a text of B bytes
//	grow      {"name": T}: adds the tool T, tells of it, answers
//	flood     {"n": N}: N times notifications/tools/list_changed, then a result
//	canceled  the ids that notifications/cancelled named, as structuredContent.ids
//	pids      the process id and that of a descendant, as structuredContent.pids
//	say       {"notes": [T], "times": N}: the texts T on the call's own stream, with $ID and $BAD replaced, N times,
//	          then a result; not among DefaultTools, as those that follow
//	shout     {"notes": [T], "times": N}: the texts T to all who listen, then a result
//	offer     {"list": L, "items": [D]}: lists D as prompts, resources or resourceTemplates, tells of it, answers
//	update    {"uri": U}: tells those who have subscribed that the resource has changed, answers
//	wishes    what is subscribed to, the history of that, and the log levels set, as structuredContent
//	ask       {"questions": [{"id","method","params"}]}: sends each as a request of its own, on the call's stream or with
//	          "standing": true on the listening one, waits for the responses unless "leave": true, and answers with them,
//	          byte for byte, as structuredContent.answers; with "in_turn": true it asks one after the other
//	converse  {"text": T}: three times progress and a log message, an elicitation after the first, a sampling after the
//	          second, then structuredContent {"text": T, "answers": [A, A]}; all that it says and asks holds T
//	withdraw  {"id": I}: cancels the question I
//	answers   {"wait": T}: all responses that questions got, as structuredContent.answers, once one of them holds the
//	          text T
//	rounds    {"key": K, "results": [R]}: answers the nth call with the same K with the nth R, byte for byte, and after
//	          that with the params of all those calls as structuredContent.received
//	task      {"text": T, "ask": Q}: as a task only: it goes on until it is finished, and then has T as its text. With
//	          Q, the params of an elicitation, it needs that answered first, which goes before T
//	finish    {"task": I}: finishes the task I, tells of its status and before that of its progress, answers
//	noted     every notification of clients whose method does not begin with notifications/, as structuredContent.noted
//	wait      {"file": F}: a result once there is the file F, unless canceled
//	arrived   {"tool": T}: how many calls of the tool T have come, as structuredContent.n
//	calls     how many other calls have no answer, how often notifications/cancelled has come, and how many calls lost
//	          their stream before they had an answer, as structuredContent.open, .canceled and .closed
//	note      {"text": T}: keeps T, and answers with all that was kept, as structuredContent.notes
//
// The tools from say on are not among DefaultTools.
//
// Requests of methods that begin with acme/ are answered as those of Features are.
//
// Every other tool answers {"content":[{"type":"text","text":"ok"}]}.
package upstreamtest

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"
)

// Behaviour is a way to misbehave.
type Behaviour string

const (
	NeverInitialises Behaviour = "never_initialises" // reads everything and answers nothing
	ExitsAtOnce      Behaviour = "exits_at_once"     // says why on stderr, status 3 (stdio)
	IgnoresDiscover  Behaviour = "ignores_discover"  // and answers everything else
	DeafByDiscover   Behaviour = "deaf_by_discover"  // answers nothing more once it was asked server/discover
	ExitsOnDiscover  Behaviour = "exits_on_discover" // as servers do that want initialize first (stdio)
	Noise            Behaviour = "noise"             // prints what is no JSON-RPC before every message (stdio)
	EndlessCursor    Behaviour = "endless_cursor"    // a new nextCursor on every page
	RepeatedCursor   Behaviour = "repeated_cursor"   // the same nextCursor on every page
	NoTools          Behaviour = "no_tools"          // offers no tools capability
	SilentList       Behaviour = "silent_list"       // does not answer tools/list
	StopsReading     Behaviour = "stops_reading"     // stops reading stdin after the first tools/list (stdio)
	DiesSlowly       Behaviour = "dies_slowly"       // when it is to die, it closes stdout and goes on running (stdio)
	// closes stdin after the first tools/list, and goes on running (stdio)
	ClosesStdin     Behaviour = "closes_stdin"
	Stubborn        Behaviour = "stubborn"         // ignores the end of stdin and SIGTERM (stdio)
	HasDescendant   Behaviour = "has_descendant"   // starts a process of its own that sleeps for long (stdio)
	SilentFeatures  Behaviour = "silent_features"  // answers no list but that of tools
	SilentLevel     Behaviour = "silent_level"     // does not answer logging/setLevel
	RefusesFeatures Behaviour = "refuses_features" // answers these with an error
	Chatty          Behaviour = "chatty"           // writes 1,000 lines to stderr at start (stdio)
	AsksEarly       Behaviour = "asks_early"       // asks for roots, with the id "early", once it is initialised
	// asks for roots, with an id that begins with again, when it is told that they have changed
	AsksAgain Behaviour = "asks_again"
)

// Script says how a fake server behaves. The zero value is an honest server of protocol 2025-11-25.
type Script struct {
	Name         string // serverInfo.name; default "fake"
	Modern       bool   // speaks 2026-07-28 and answers server/discover; otherwise it is an unknown method there
	Quits        string // a method: asked by that it says so on stderr and ends with status 7 (stdio)
	Held         string // a file: while there is one, it does not start (stdio)
	Turned       string // a file: while there is one at a start, it is the other way round (stdio)
	Instructions string // $BAD is replaced as in answer
	Behaviours   []Behaviour

	Tools     []json.RawMessage // what it lists, byte for byte, but for $BAD, as in answer; default: DefaultTools
	ToolsFile string            // a file with a JSON array of tools, instead of Tools
	PageSize  int               // tools on a page; 0: all on one

	// Hints are the cache hints of a list's pages, raw, with a comma before each member, by the list's
	// member. The last one stands for all further pages. Default on 2026-07-28: none.
	Hints map[string][]string

	Features Features // what it offers besides tools

	Tasks        bool   // offers tasks: of 2025-11-25, or as the extension of 2026-07-28; see the tools about tasks
	Capabilities string // further members of its capabilities, raw, with a comma before each

	// Results hold what tools answer, byte for byte, by name; before what the tools above do. Under a
	// URI they hold the answer to resources/read: an error where it begins with its code.
	Results map[string]json.RawMessage

	// a directory: what a tool answers is the file of its name there, where there is one; for long
	// results
	ResultsIn string

	// Says are texts that tools send, by name, as answer does; before what the tools above do.
	Says map[string]string

	Delay  time.Duration // it does nothing for so long at start (stdio)
	Stderr []string      // lines written to stderr at start (stdio)
	Record string        // a file to which every message received is appended, as it is, with a line break (stdio)
}

// Has reports whether the script asks for b.
func (s Script) Has(b Behaviour) bool { return slices.Contains(s.Behaviours, b) }

// DefaultTools are the declarations of the tools that every fake server lists where its script names none.
func DefaultTools() []json.RawMessage {
	names := []string{"echo", "raw", "fail", "answer", "progress", "sleep", "hang", "die", "big", "grow", "flood",
		"canceled", "pids"}
	out := make([]json.RawMessage, len(names))
	for i, name := range names {
		out[i] = Tool(name)
	}
	return out
}

// Tool is the declaration of a tool called name that takes any object.
func Tool(name string) json.RawMessage {
	return fmt.Appendf(nil, `{"name":%q,"description":"fake tool <%s>","inputSchema":{"type":"object"}}`, name, name)
}

// tools returns what the script lists.
func (s Script) tools() []json.RawMessage {
	if s.ToolsFile != "" {
		data, err := os.ReadFile(s.ToolsFile)
		var tools []json.RawMessage
		if err == nil {
			err = json.Unmarshal(data, &tools)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "read tools:", err)
			return nil
		}
		return tools
	}
	if s.Tools != nil {
		return append([]json.RawMessage(nil), s.Tools...)
	}
	return DefaultTools()
}
