package deferred

import (
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// maxDescription bounds the description of the search, in bytes: clients cut longer ones.
const maxDescription = 2048

// describe returns the description of the search: how to use it, which servers there are and what they are for. Models
// search because of that. It changes with the servers, not with each of their tools.
func describe(deferred []tool.Listed, about func(server string) (title, says string)) string {
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
		if text := serverLines(servers, tools, about, length); len(text) <= room || length == 0 {
			return searchIntro + "\nServers:" + cutLines(text, room)
		}
	}
	return searchIntro
}

const moreServers = "\n… and others: search for them."

// serverLines writes a line for each server, with its purpose in at most length bytes.
func serverLines(servers []string, tools map[string][]string, about func(string) (title, says string),
	length int) string {
	var b strings.Builder
	for _, server := range servers {
		b.WriteString("\n" + server)
		title, says := about(server)
		if what := purpose(server, title, says, tools[server], length); what != "" {
			b.WriteString(": " + what)
		}
	}
	return b.String()
}

// purpose says what a server is for: in its own words, or else by its title and a few of its tools.
func purpose(server, title, says string, tools []string, length int) string {
	if says != "" {
		return oneLine(firstSentence(says), length)
	}
	some := strings.Join(tools[:min(len(tools), 4)], ", ")
	if title != "" && !strings.EqualFold(title, server) {
		some = oneLine(title, length) + "; " + some
	}
	return oneLine(some, length)
}

// cutLines keeps as many lines as fit into room bytes.
func cutLines(text string, room int) string {
	if len(text) <= room {
		return text
	}
	return text[:max(strings.LastIndexByte(text[:room+1], '\n'), 0)] + moreServers
}

func firstSentence(text string) string {
	if at := strings.Index(text, ". "); at >= 20 {
		return text[:at+1]
	}
	return text
}

// maxSaid bounds the part of a server's instructions that describes it, in bytes.
const maxSaid = 400

// oneLine makes one line of a server's text, of at most limit bytes, without control and invisible characters.
func oneLine(text string, limit int) string {
	clean := strings.Join(strings.Fields(hidden.Line(text[:min(len(text), 16*limit)])), " ")
	if len(clean) <= limit {
		return clean
	}
	cut := strings.ToValidUTF8(clean[:max(0, limit-len("…"))], "")
	if at := strings.LastIndexByte(cut, ' '); at > limit/2 {
		cut = cut[:at]
	}
	return strings.TrimRight(cut, " ,;:") + "…"
}
