package upstream

// list is one of the lists that a server offers. All are read, kept and admitted in the same way.
type list int

const (
	toolList list = iota
	promptList
	resourceList
	templateList
	lists // how many there are
)

// kind is what a server announces changes of: templates change with resources.
type kind int

const (
	toolKind kind = iota
	promptKind
	resourceKind
	kinds // how many there are
)

// method is the request that returns a page of the list.
func (l list) method() string {
	return [...]string{methodListTools, "prompts/list", "resources/list", "resources/templates/list"}[l]
}

// member is the member of a page's result that holds the elements.
func (l list) member() string {
	return [...]string{"tools", "prompts", "resources", "resourceTemplates"}[l]
}

// key is the member of an element by which it is told from the others.
func (l list) key() string { return [...]string{"name", "name", "uri", "uriTemplate"}[l] }

// noun is what an element is called in messages.
func (l list) noun() string {
	return [...]string{"tool", "prompt", "resource", "resource template"}[l]
}

func (l list) kind() kind {
	return [...]kind{toolKind, promptKind, resourceKind, resourceKind}[l]
}

// lists are the lists that change with k.
func (k kind) lists() []list {
	return [...][]list{{toolList}, {promptList}, {resourceList, templateList}}[k]
}

// changed is the notification that tells of a change.
func (k kind) changed() string {
	return [...]string{noteToolsChanged, "notifications/prompts/list_changed", "notifications/resources/list_changed"}[k]
}

// filter is the member of a subscriptions/listen that asks for that notification.
func (k kind) filter() string {
	return [...]string{"toolsListChanged", "promptsListChanged", "resourcesListChanged"}[k]
}

// listOf returns the list that method reads.
func listOf(method string) (list, bool) {
	for l := range lists {
		if l.method() == method {
			return l, true
		}
	}
	return 0, false
}
