package deferred

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// maxDescription bounds tool_search's description, in bytes: clients cut longer ones.
const maxDescription = 2048

const searchIntro = "Finds tools that are not listed. Search here before you say that something cannot be done, or when you " +
	"need a tool of one of the servers below. query is words for what you want to do; select:NAME,NAME for tools whose names " +
	"you know; or regex:PATTERN. The answer has the tools' declarations; call one with tool_call, with its selection_ref."

const searchSchema = `{"type":"object","properties":{` +
	`"query":{"type":"string","minLength":1,"maxLength":10000,"description":"What you want to do, select:NAME,NAME, or regex:PATTERN (RE2)."},` +
	`"servers":{"type":"array","items":{"type":"string"},"maxItems":100,"description":"Only tools of these servers."},` +
	`"limit":{"type":"integer","minimum":1,"maximum":50,"description":"How many tools to return at most; default 5."},` +
	`"detail":{"type":"string","enum":["full","signature","names"],` +
	`"description":"full (default): declarations; signature: one typed line a tool; names: names only."}},` +
	`"required":["query"]}`

const callDescription = "Calls a tool that tool_search found, with arguments that fit its inputSchema. The result is that tool's own."

const callSchema = `{"type":"object","properties":{` +
	`"name":{"type":"string","minLength":1,"description":"The tool's name, as tool_search gave it."},` +
	`"arguments":{"type":"object","description":"The tool's own arguments."},` +
	`"selection_ref":{"type":"string","description":"As tool_search gave it."}},` +
	`"required":["name"]}`

// meta are the hub's own tools on a surface of which deferred is held back, without those that the policy leaves out.
func (p *splitting) meta(deferred []tool.Listed) map[string]*tool.Listed {
	own := map[string]*tool.Listed{
		string(tool.MetaSearch): metaTool(tool.MetaSearch, "Search tools", p.describe(deferred), searchSchema,
			`{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}`),
		string(tool.MetaCall): metaTool(tool.MetaCall, "Call a tool", callDescription, callSchema, `{"openWorldHint":true}`),
	}
	for name := range own {
		if p.full.Withholds(tool.Name(name)) {
			delete(own, name)
		}
	}
	return own
}

func metaTool(name tool.Name, title, description, schema, hints string) *tool.Listed {
	d := append([]byte(`{"name":`), rawjson.Quote(string(name))...)
	d = append(append(d, `,"title":`...), rawjson.Quote(title)...)
	d = append(append(d, `,"description":`...), rawjson.Quote(description)...)
	d = append(append(d, `,"inputSchema":`...), schema...)
	d = append(append(append(d, `,"annotations":`...), hints...), `,"_meta":{"anthropic/alwaysLoad":true}}`...)
	return &tool.Listed{Name: string(name), Declaration: d, Tool: &tool.Tool{Name: name, Server: tool.OwnServer, Native: string(name),
		Declaration: d, InputSchema: json.RawMessage(schema), SchemaDigest: tool.Digest([]byte(schema)), Title: title,
		Description: description}}
}

// describe is tool_search's description: how to use it, and which servers there are and what they are for, since that is
// what makes models search. It changes with the servers, not with each of their tools.
func (p *splitting) describe(deferred []tool.Listed) string {
	var servers []string
	tools := make(map[string][]string)
	for _, t := range deferred {
		if tools[t.Tool.Server] == nil {
			servers = append(servers, t.Tool.Server)
		}
		tools[t.Tool.Server] = append(tools[t.Tool.Server], t.Tool.Native)
	}
	if len(servers) == 0 {
		return searchIntro
	}
	slices.Sort(servers)
	room := maxDescription - len(searchIntro) - len("\nServers:") - len(moreServers)
	for _, length := range [...]int{160, 100, 60, 30, 0} {
		if text := p.servers(servers, tools, length); len(text) <= room || length == 0 {
			return searchIntro + "\nServers:" + cutLines(text, room)
		}
	}
	return searchIntro
}

const moreServers = "\n… and others: search for them."

// servers is a line for each server, with what it is for in at most length bytes.
func (p *splitting) servers(servers []string, tools map[string][]string, length int) string {
	var b strings.Builder
	for _, server := range servers {
		b.WriteString("\n" + server)
		if what := p.whatFor(server, tools[server], length); what != "" {
			b.WriteString(": " + what)
		}
	}
	return b.String()
}

// whatFor is what a server is for: in its own words, or else by its title and a few of its tools.
func (p *splitting) whatFor(server string, tools []string, length int) string {
	if length == 0 {
		return ""
	}
	o := p.origins[server]
	if o != nil && o.says != "" {
		return oneLine(firstSentence(o.says), length)
	}
	title := ""
	if o != nil && o.catalog.Title != "" && !strings.EqualFold(o.catalog.Title, server) {
		title = oneLine(o.catalog.Title, length) + "; "
	}
	return oneLine(title+strings.Join(tools[:min(len(tools), 4)], ", "), length)
}

// cutLines keeps the lines that have room.
func cutLines(text string, room int) string {
	if len(text) <= room {
		return text
	}
	at := strings.LastIndexByte(text[:room+1], '\n')
	return text[:max(at, 0)] + moreServers
}

func firstSentence(text string) string {
	if at := strings.Index(text, ". "); at >= 20 {
		return text[:at+1]
	}
	return text
}

// maxSaid is how much of a server's instructions says what the server is for.
const maxSaid = 400

// oneLine is text of a stranger's as one line of at most limit bytes: without control and invisible characters.
func oneLine(text string, limit int) string {
	text = text[:min(len(text), 16*limit)]
	clean := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == unicode.ReplacementChar:
			return -1
		}
		return r
	}, text)
	clean = strings.Join(strings.Fields(clean), " ")
	if len(clean) <= limit {
		return clean
	}
	cut := strings.ToValidUTF8(clean[:max(0, limit-len("…"))], "")
	if at := strings.LastIndexByte(cut, ' '); at > limit/2 {
		cut = cut[:at]
	}
	return strings.TrimRight(cut, " ,;:") + "…"
}
