package events

import (
	"encoding/json"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Kinds of tools in the Agent Client Protocol. switch_mode is not among them: no tool of the hub
// switches the mode of an agent's session.
const (
	kindRead    = "read"
	kindEdit    = "edit"
	kindDelete  = "delete"
	kindMove    = "move"
	kindSearch  = "search"
	kindExecute = "execute"
	kindThink   = "think"
	kindFetch   = "fetch"
	kindOther   = "other"
)

// knownTool is what the journal says of a tool: parts of its tool_declaration and its tool_permission_profile.
type knownTool struct {
	Title    string   `json:"title"`
	Tags     []string `json:"tags"`
	Access   []string `json:"access_kinds"`
	Effects  []string `json:"write_effects"`
	Contract struct {
		Targets []tool.TargetField `json:"target_fields"`
	} `json:"input_contract"`
}

// learn takes in a declaration or a permission profile.
func (a *acp) learn(object json.RawMessage) {
	var id struct {
		Tool    tool.Name `json:"tool_id"`
		Profile string    `json:"permission_profile_id"` // "<tool>/permission"
	}
	if json.Unmarshal(object, &id) != nil {
		return
	}
	name := id.Tool
	if name == "" {
		name = tool.Name(strings.TrimSuffix(id.Profile, "/permission"))
	}
	if a.tools[name] == nil {
		a.tools[name] = &knownTool{}
	}
	_ = json.Unmarshal(object, a.tools[name]) // adds to what is known; what it does not fit is not used
}

// kindOf is the kind of a tool, from its facts; t is nil where the journal has none. The verb in
// its name counts where facts do not tell two kinds apart.
func kindOf(name tool.Name, t *knownTool) string {
	if t == nil {
		return kindOther
	}
	is := func(tag string) bool { return slices.Contains(t.Tags, tag) }
	does := func(effects ...string) bool {
		return slices.ContainsFunc(effects, func(e string) bool { return slices.Contains(t.Effects, e) })
	}
	says := func(verbs ...string) bool { return saysOne(name, verbs) }
	switch {
	case is("command") || slices.Contains(t.Access, "execute") || does("execute"):
		return kindExecute
	case says("think", "thinking", "sequentialthinking", "reason", "plan"):
		return kindThink
	case is("readonly") && says("search", "find", "grep", "glob", "query", "lookup"):
		return kindSearch
	case says("fetch", "download", "crawl", "scrape"), is("readonly") && is("network"):
		return kindFetch
	case is("readonly"):
		return kindRead
	case says("move", "rename"):
		return kindMove
	case does("create", "update", "upload"):
		return kindEdit
	case does("delete"):
		return kindDelete
	}
	return kindOther
}

// saysOne reports whether one of the verbs is a word of the tool's own name.
func saysOne(name tool.Name, verbs []string) bool {
	own := string(name)[strings.LastIndexByte(string(name), '.')+1:]
	var words strings.Builder
	for i, r := range own {
		if i > 0 && r >= 'A' && r <= 'Z' { // camelCase
			words.WriteByte(' ')
		}
		words.WriteRune(r)
	}
	return slices.ContainsFunc(strings.FieldsFunc(strings.ToLower(words.String()),
		func(r rune) bool { return r < 'a' || r > 'z' }),
		func(word string) bool { return slices.Contains(verbs, word) })
}

// targets are the values of arguments that name something outside, of these kinds; of any where there is none.
func (t *knownTool) targets(input json.RawMessage, kinds ...string) (all []string) {
	var arguments any
	if json.Unmarshal(input, &arguments) != nil {
		return nil
	}
	for _, field := range t.Contract.Targets {
		if len(kinds) == 0 || slices.Contains(kinds, field.Kind) {
			all = appendValues(all, arguments, strings.Split(strings.TrimPrefix(field.Pointer, "/"), "/"))
		}
	}
	return all
}

// appendValues adds the strings that the steps of a pointer lead to; "*" is every element.
func appendValues(all []string, value any, steps []string) []string {
	if list, ok := value.([]any); ok {
		if len(steps) > 0 && steps[0] == "*" {
			steps = steps[1:]
		}
		for _, element := range list {
			all = appendValues(all, element, steps)
		}
		return all
	}
	if len(steps) == 0 {
		if text, ok := value.(string); ok {
			all = append(all, text)
		}
		return all
	}
	members, _ := value.(map[string]any)
	return appendValues(all, members[rawjson.PointerName(steps[0])], steps[1:])
}

// locations are the files that arguments name by paths, relative ones below dir, or by file URLs.
func (t *knownTool) locations(input json.RawMessage, dir string) (all []acpLocation) {
	for _, path := range t.targets(input, "path", "url") {
		if u, err := url.Parse(path); err == nil && u.Scheme == "file" {
			path = filepath.FromSlash(u.Path)
		}
		if path = absolute(path, dir); path != "" {
			all = append(all, acpLocation{Path: path})
		}
	}
	return all
}

// absolute is path, which starts in dir where it is relative; "" where it is relative and dir is not known.
func absolute(path, dir string) string {
	switch {
	case filepath.IsAbs(path):
		return path
	case dir == "" || strings.Contains(path, "://"):
		return ""
	}
	return filepath.Join(dir, filepath.FromSlash(path))
}

// first is the first target of a call, short, for its title.
func (t *knownTool) first(input json.RawMessage) string {
	all := t.targets(input)
	if len(all) == 0 {
		return ""
	}
	text := []rune(strings.Join(strings.Fields(all[0]), " "))
	if len(text) > 80 {
		text = append(text[:79], '…')
	}
	return string(text)
}
