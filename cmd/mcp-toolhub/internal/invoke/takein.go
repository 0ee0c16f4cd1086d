package invoke

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"mime"
	"net/http"
	"net/url"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Bounds of what is taken in of one result.
const (
	maxTaken     = 16       // URIs
	maxTakenSize = 16 << 20 // bytes of each artifact
	maxTakenURI  = 4 << 10
	takePatience = 10 * time.Second // for all
)

// Sources read what a result names.
type Sources interface {
	// Resource reads a resource of a server for a call, as the answer to resources/read. The error
	// is also that the policy forbids it.
	Resource(ctx context.Context, c *Call, server, uri string) (tool.Reply, error)

	// File reads a file below root, by its path from there, and at most that many bytes.
	File(root, name string, most int64) ([]byte, error)
}

// reference is what a result names.
type reference struct {
	uri, mediaType string
	linked         bool // by a resource_link
}

// taker takes in what the result of an invocation names, as far as a rule has it.
type taker struct {
	Sources
	*tool.TakeIn
	inv *invocation
}

// takeIn reads what the result names. What cannot be read is an artifact with the reason. Nothing
// is read where that could not be stored.
func (t taker) takeIn(ctx context.Context, stored bool) (taken []tool.Artifact) {
	ctx, cancel := context.WithTimeout(ctx, takePatience)
	defer cancel()
	for _, ref := range referencesIn(t.inv.outcome.Result) {
		path := filePath(ref.uri)
		if !(t.Resources && ref.linked) && (path == "" || len(t.Files) == 0) {
			continue // nobody asks for it
		}
		var found []tool.Artifact
		var err error
		switch {
		case len(taken) >= maxTaken:
			return append(taken, tool.Artifact{Name: ref.uri,
				Err: fmt.Errorf("the result names more than %d, and this is the next", maxTaken)})
		case len(ref.uri) > maxTakenURI:
			ref.uri, err = ref.uri[:maxTakenURI], fmt.Errorf("its URI is longer than %d bytes", maxTakenURI)
		case !stored:
		default:
			found, err = t.read(ctx, ref, path)
		}
		if len(found) == 0 {
			found = []tool.Artifact{{Name: ref.uri, Err: err}}
		}
		taken = append(taken, found...)
	}
	return taken
}

// read reads what ref names: from the disk where it is a file below a directory of the rule, and
// otherwise from the tool's server.
func (t taker) read(ctx context.Context, ref reference, path string) ([]tool.Artifact, error) {
	if path != "" {
		for _, root := range t.Files {
			name, err := filepath.Rel(root, path)
			if err != nil || !filepath.IsLocal(name) {
				continue
			}
			raw, err := t.File(root, name, maxTakenSize)
			if err != nil {
				return nil, err
			}
			kind := cmp.Or(ref.mediaType, mime.TypeByExtension(filepath.Ext(path)), http.DetectContentType(raw))
			return []tool.Artifact{{Name: ref.uri, MediaType: kind, Bytes: raw}}, nil
		}
		if !t.Resources || !ref.linked {
			return nil,
				errors.New("it lies below none of the directories that artifacts.files lists: list the one where it is")
		}
	}
	if t.inv.listed.Tool.Server == "" {
		return nil, errors.New("its tool has no server")
	}
	reply, err := t.Resource(ctx, t.inv.call, t.inv.listed.Tool.Server, ref.uri)
	if err == nil && reply.NeedsInput {
		err = errors.New("the server asks for input first")
	}
	if err != nil {
		return nil, fmt.Errorf("its server does not give it: %w", err)
	}
	return contentsOf(reply.Result, ref)
}

// contentsOf reads the contents of an answer to resources/read.
func contentsOf(result []byte, ref reference) (all []tool.Artifact, err error) {
	contents, _ := rawjson.Get(result, "contents")
	_ = rawjson.Elements(contents, func(c []byte) bool {
		a := tool.Artifact{Name: cmp.Or(rawjson.Text(c, "uri"), ref.uri), MediaType: cmp.Or(rawjson.Text(c, "mimeType"),
			ref.mediaType)}
		if text, ok := rawjson.GetString(c, "text"); ok {
			a.Bytes = []byte(text)
		} else {
			a.Bytes, a.Err = base64.StdEncoding.DecodeString(rawjson.Text(c, "blob"))
		}
		if len(a.Bytes) > maxTakenSize {
			a.Bytes, a.Err = nil, fmt.Errorf("it is larger than %d MiB", maxTakenSize>>20)
		}
		a.MediaType = cmp.Or(a.MediaType, http.DetectContentType(a.Bytes))
		all = append(all, a)
		return len(all) < maxTaken
	})
	if len(all) == 0 {
		return nil, errors.New("its server has no contents for it")
	}
	return all, nil
}

// referencesIn returns what a result names: by resource links, and by URIs of files in any string
// of it, of these one more than are taken.
func referencesIn(result []byte) (all []reference) {
	content, _ := rawjson.Get(result, "content")
	_ = rawjson.Elements(content, func(block []byte) bool {
		if rawjson.Text(block, "type") == "resource_link" {
			all = append(all, reference{rawjson.Text(block, "uri"), rawjson.Text(block, "mimeType"), true})
		}
		return true
	})
	most := len(all) + maxTaken + 1
	for i := 0; i < len(result); i++ {
		if result[i] != '"' {
			continue
		}
		end := rawjson.SkipString(result, i)
		if bytes.Contains(result[i:end], []byte("file:")) {
			text, _ := rawjson.String(result[i:end])
			for uri := range fileURIs(text) {
				if len(all) == most {
					return all
				}
				if filePath(uri) != "" && !slices.ContainsFunc(all, func(r reference) bool { return r.uri == uri }) {
					all = append(all, reference{uri: uri})
				}
			}
		}
		i = end - 1
	}
	return all
}

// fileURIs finds URIs of files in a text. A text of one line that begins with "file:", and has no
// other "file:", is one URI. In any other text a URI ends before white space, a quote, a bracket or
// a backslash, and punctuation at its end is left out.
func fileURIs(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if strings.LastIndex(text, "file:") == 0 && !strings.ContainsAny(text, "\r\n") {
			yield(text)
			return
		}
		for begin := 0; ; {
			at := strings.Index(text[begin:], "file:")
			if at < 0 {
				return
			}
			at += begin
			begin = len(text)
			if end := strings.IndexAny(text[at:], " \t\r\n\"'`()[]{}<>\\"); end >= 0 {
				begin = at + end
			}
			inWord := at > 0 && strings.Contains("+-.", text[at-1:at]) || at > 0 && isAlphanumeric(text[at-1])
			if !inWord && !yield(strings.TrimRight(text[at:begin], ".,;:!?")) {
				return
			}
		}
	}
}

func isAlphanumeric(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' }

// filePath is the path that a file URI names on this machine; "" where it is none.
func filePath(uri string) string {
	if !strings.HasPrefix(uri, "file:") {
		return ""
	}
	u, err := url.Parse(uri)
	if err != nil || u.Path == "" || u.Host != "" && u.Host != "localhost" {
		return ""
	}
	path := u.Path
	if runtime.GOOS == "windows" {
		path = strings.TrimPrefix(path, "/")
	}
	return filepath.FromSlash(path)
}
