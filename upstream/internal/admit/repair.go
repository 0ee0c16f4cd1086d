package admit

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// repair brings the members of c in order. One mistyped member of one tool fails the whole list in clients that decode
// it into types; members that no revision of the protocol knows stay as they are.
func (c *candidate) repair(a *admission) {
	c.checkInputSchema()
	if c.refused != nil {
		return
	}
	c.checkOutputSchema()
	c.checkHeaders()
	for _, part := range []string{"title", "description"} {
		if value, ok := rawjson.Get(c.declaration, part); ok && !isString(value) {
			c.remove(part, "it was %s instead of a string", kindOf(value))
		}
	}
	c.checkAnnotations()
	if value, ok := rawjson.Get(c.declaration, "icons"); ok {
		if fault := iconsFault(value); fault != "" {
			c.remove("icons", "%s", fault)
		}
	}
	c.checkMeta()
	c.checkExecution()
	a.checkHidden(c)
	if c.refused == nil && len(c.repairs) > 0 && (!rawjson.Valid(c.declaration) || !rawjson.IsObject(c.declaration)) {
		c.refuse(codeInvalidDeclaration, "its declaration cannot be repaired: correct it on the server")
	}
}

// set replaces member part of the declaration, or appends it.
func (c *candidate) set(part, value string) {
	changed, err := rawjson.Set(c.declaration, part, []byte(value))
	if err != nil {
		c.refuse(codeInvalidDeclaration, "its declaration is not a JSON object: correct it on the server")
		return
	}
	c.declaration = changed
}

// remove deletes member part of the declaration and says why.
func (c *candidate) remove(part, format string, args ...any) {
	changed, _, err := rawjson.Delete(c.declaration, part)
	if err != nil {
		c.refuse(codeInvalidDeclaration, "its declaration is not a JSON object: correct it on the server")
		return
	}
	c.declaration = changed
	c.repaired(part, "%s; it was removed", fmt.Sprintf(format, args...))
}

// object returns member part of the declaration. One that is no object is removed.
func (c *candidate) object(part string) (value []byte, ok bool) {
	value, ok = rawjson.Get(c.declaration, part)
	if ok && !rawjson.IsObject(value) {
		c.remove(part, "it was %s instead of an object", kindOf(value))
		return nil, false
	}
	return value, ok
}

// checkAnnotations removes annotations of a wrong type, one by one.
func (c *candidate) checkAnnotations() {
	const part = "annotations"
	value, ok := c.object(part)
	if !ok {
		return
	}
	changed, removed, err := rawjson.DeleteFunc(value, func(m rawjson.Member) bool {
		fault := annotationFault(m)
		if fault != "" {
			c.repaired(part+"."+m.Name(), "%s; it was removed", fault)
		}
		return fault != ""
	})
	switch {
	case err != nil:
		c.remove(part, "it cannot be read")
	case removed:
		c.set(part, string(changed))
	}
}

// annotationFault says what is wrong with the type of an annotation; "" for the right ones and those nobody knows.
func annotationFault(m rawjson.Member) string {
	switch m.Name() {
	case "title":
		if !isString(m.Value) {
			return fmt.Sprintf("it was %s instead of a string", kindOf(m.Value))
		}
	case "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint":
		if v := string(m.Value); v != "true" && v != "false" {
			return fmt.Sprintf("it was %s instead of a boolean", kindOf(m.Value))
		}
	}
	return ""
}

// iconsFault says what is wrong with icons, "" where nothing is.
func iconsFault(icons []byte) string {
	fault := ""
	err := rawjson.Elements(icons, func(icon []byte) bool {
		switch {
		case !rawjson.IsObject(icon):
			fault = fmt.Sprintf("it held %s instead of an object", kindOf(icon))
		case !hasString(icon, "src"):
			fault = `it held an icon without a string "src"`
		default:
			fault = iconMemberFault(icon)
		}
		return fault == ""
	})
	if err != nil {
		return fmt.Sprintf("it was %s instead of an array", kindOf(icons))
	}
	return fault
}

func iconMemberFault(icon []byte) string {
	if value, ok := rawjson.Get(icon, "mimeType"); ok && !isString(value) {
		return fmt.Sprintf(`the "mimeType" of an icon was %s instead of a string`, kindOf(value))
	}
	if _, ok := rawjson.Get(icon, "theme"); ok {
		if theme := rawjson.Text(icon, "theme"); theme != "light" && theme != "dark" {
			return `the "theme" of an icon was neither "light" nor "dark"`
		}
	}
	if value, ok := rawjson.Get(icon, "sizes"); ok {
		strings := true
		err := rawjson.Elements(value, func(size []byte) bool {
			strings = isString(size)
			return strings
		})
		if err != nil || !strings {
			return `the "sizes" of an icon were no array of strings`
		}
	}
	return ""
}

// checkMeta removes a _meta that is no object or that clients fail to decode.
func (c *candidate) checkMeta() {
	const part = "_meta"
	value, ok := c.object(part)
	if !ok {
		return
	}
	if err := json.Unmarshal(value, new(map[string]any)); err != nil {
		c.remove(part, "it held a number beyond a 64-bit float")
	}
}

// checkExecution removes an execution member that clients would refuse.
func (c *candidate) checkExecution() {
	const part = "execution"
	value, ok := c.object(part)
	if !ok {
		return
	}
	support, ok := rawjson.Get(value, "taskSupport")
	if !ok {
		return
	}
	allowed := []string{"forbidden", "optional", "required"}
	if word, is := rawjson.String(support); !is || !slices.Contains(allowed, word) {
		c.remove(part, `its "taskSupport" was none of "forbidden", "optional" and "required"`)
	}
}

func isString(value []byte) bool { return len(value) > 0 && value[0] == '"' }

func hasString(object []byte, name string) bool {
	value, ok := rawjson.Get(object, name)
	return ok && isString(value)
}
