// Package lists names the four lists of an MCP server on the wire: the requests, the members, the
// notifications of changes.
package lists

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// List is one of the lists of a server. All are read, kept and admitted in the same way.
type List int

const (
	Tools List = iota
	Prompts
	Resources
	Templates
	Count // how many there are
)

// Kind names what a server announces changes of. Templates change with resources.
type Kind int

const (
	ToolKind Kind = iota
	PromptKind
	ResourceKind
	Kinds // how many there are
)

// Method returns the request for a page of the list.
func (l List) Method() string {
	return [...]string{"tools/list", "prompts/list", "resources/list", "resources/templates/list"}[l]
}

// Member returns the member of a page's result that holds the elements.
func (l List) Member() string {
	return [...]string{"tools", "prompts", "resources", "resourceTemplates"}[l]
}

// Key returns the member that identifies an element.
func (l List) Key() string { return [...]string{"name", "name", "uri", "uriTemplate"}[l] }

// Noun returns the word for an element in messages.
func (l List) Noun() string {
	return [...]string{"tool", "prompt", "resource", "resource template"}[l]
}

// Kind returns what the server announces when l changes.
func (l List) Kind() Kind {
	return [...]Kind{ToolKind, PromptKind, ResourceKind, ResourceKind}[l]
}

// Capability returns the server capability that stands for k.
func (k Kind) Capability() string { return [...]string{"tools", "prompts", "resources"}[k] }

// Lists returns the lists that change with k.
func (k Kind) Lists() []List {
	return [...][]List{{Tools}, {Prompts}, {Resources, Templates}}[k]
}

// Changed returns the notification of a change.
func (k Kind) Changed() string {
	return [...]string{"notifications/tools/list_changed", "notifications/prompts/list_changed",
		"notifications/resources/list_changed"}[k]
}

// Filter returns the member of subscriptions/listen that asks for that notification.
func (k Kind) Filter() string {
	return [...]string{"toolsListChanged", "promptsListChanged", "resourcesListChanged"}[k]
}

// Of returns the list that method reads.
func Of(method string) (List, bool) {
	for l := range Count {
		if l.Method() == method {
			return l, true
		}
	}
	return 0, false
}

// ReadPage returns the elements of a page of l, which alias result, and the cursor of the next page; nil where there is
// none. Some servers write an empty list as null or {}.
func (l List) ReadPage(result json.RawMessage) (all []json.RawMessage, next *string, err error) {
	array, ok := rawjson.Get(result, l.Member())
	if !ok {
		return nil, nil, fmt.Errorf("the result has no %s", l.Member())
	}
	err = rawjson.Elements(array, func(one []byte) bool {
		all = append(all, one)
		return true
	})
	none := rawjson.IsNull(array)
	if rawjson.IsObject(array) {
		none = len(bytes.TrimSpace(array[1:len(array)-1])) == 0
	}
	if err != nil && !none {
		return nil, nil, fmt.Errorf("%s is no array", l.Member())
	}
	if cursor, ok := rawjson.GetString(result, "nextCursor"); ok {
		next = &cursor
	}
	return all, next, nil
}

// ValidButDeep reports whether object is well-formed, apart from elements of its lists that nest
// too deeply to be validated. Only the ends of these are known.
func ValidButDeep(object []byte) bool {
	if rawjson.Valid(object) {
		return true
	}
	rest := object
	for l := range Count {
		array, ok := rawjson.Get(object, l.Member())
		if !ok {
			continue
		}
		var err error
		if rest, err = rawjson.Set(rest, l.Member(), []byte("[]")); err != nil {
			return false
		}
		valid := true
		err = rawjson.Elements(array, func(one []byte) bool {
			valid = rawjson.Depth(one) > rawjson.MaxDepth || rawjson.Valid(one)
			return valid
		})
		if err != nil || !valid {
			return false
		}
	}
	return rawjson.Valid(rest)
}
