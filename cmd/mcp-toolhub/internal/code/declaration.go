package code

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Native names of the tools. Each has a declaration in declarations. Their schemas keep to the
// subset that the design document allows: no $ref, no oneOf, no conditionals. The tools that write
// have no destructiveHint: it is true where it is left out, and what they replace has been shown or
// asked for.
const (
	readFile   = "read_file"
	listDir    = "list_dir"
	search     = "search"
	writeFile  = "write_file"
	editFile   = "edit_file"
	runCommand = "run_command"
)

//go:embed declarations
var declarations embed.FS

// newCatalog declares the tools that read, and those that write where writes is set.
func newCatalog(writes bool) (tool.Catalog, error) {
	c := tool.Catalog{Server: Name, Source: Name, Title: "Project files, read-only",
		Tags: []string{"code", "filesystem", "readonly"},
		Instructions: "Reads, lists and searches the files of the project. Paths are relative to the project, " +
			"or absolute."}
	names := map[string][]string{"readonly": {readFile, listDir, search}}
	if writes {
		c.Title, c.Tags = "Project files", []string{"code", "filesystem"}
		names["write"] = []string{writeFile, editFile}
	}
	written, err := declarations.ReadFile("declarations/written.json")
	if err != nil {
		return c, fmt.Errorf("code: declaration: %w", err)
	}
	for _, tag := range []string{"readonly", "write"} {
		for _, name := range names[tag] {
			t, err := declared(name, `"written.json"`, string(written))
			if err != nil {
				return c, err
			}
			t.Tags = []string{tag, "filesystem", "code"}
			c.Tools = append(c.Tools, t)
		}
	}
	return c, nil
}

// declared returns the tool of that name, without tags. replace are pairs, of a JSON string in its declaration and the
// JSON that takes its place.
func declared(name string, replace ...string) (*tool.Tool, error) {
	text, err := declarations.ReadFile("declarations/" + name + ".json")
	if err != nil {
		return nil, fmt.Errorf("code: declaration: %w", err)
	}
	var compact bytes.Buffer // a declaration travels on one line of stdio
	if err := json.Compact(&compact, []byte(strings.NewReplacer(replace...).Replace(string(text)))); err != nil {
		return nil, fmt.Errorf("code: declaration: %w", err)
	}
	d := struct {
		Name, Title, Description  string
		InputSchema, OutputSchema json.RawMessage
	}{}
	if err := json.Unmarshal(compact.Bytes(), &d); err != nil {
		return nil, fmt.Errorf("code: declaration: %w", err)
	}
	return &tool.Tool{
		Name: tool.Name(Name + "." + d.Name), Server: Name, Native: d.Name, Declaration: compact.Bytes(),
		InputSchema: d.InputSchema, OutputSchema: d.OutputSchema, SchemaDigest: tool.Digest(d.InputSchema),
		OutputDigest: tool.Digest(d.OutputSchema), Title: d.Title, Description: d.Description, TextTells: true,
	}, nil
}
