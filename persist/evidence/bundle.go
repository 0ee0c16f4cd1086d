package evidence

import (
	"archive/tar"
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/statefile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// Selection says what goes into a bundle.
type Selection struct {
	Line    func(line []byte) bool // the bundle has the line; of all others it has digests
	Without []string               // members of call records whose values are left out
	Hub     string                 // the program that makes the bundle
	Query   string                 // what was asked for, for people
	Policy  any                    // that is in force, as JSON; nil where it is not known
}

// statement is what a bundle says of itself. It is its last member, and signed.
type statement struct {
	Object   string        `json:"object"`
	Version  int           `json:"version"`
	MadeAt   time.Time     `json:"made_at"`
	Hub      string        `json:"hub,omitempty"`
	Query    string        `json:"query,omitempty"`
	Key      []byte        `json:"key"`
	Files    []statedFile  `json:"files"`
	Tools    []toolVersion `json:"tools"`           // that the lines name
	Policies []string      `json:"policy_versions"` // by which calls were decided
	Policy   any           `json:"policy,omitempty"`
	Payloads []payloadRef  `json:"payloads,omitempty"` // what lines have by digest alone
}

const (
	objectStatement  = "evidence_statement"
	statementVersion = 1
	statementName    = "statement.json"
	journalDir       = "journal/"
)

type statedFile struct {
	File string `json:"file"`
	// of the chain, or of the last head that is kept with the key where that has more
	Lines int64 `json:"lines"`

	Names map[int64]string `json:"names,omitempty"` // of the lines that are in the bundle, as the chain has them
}

type toolVersion struct {
	Tool    string `json:"tool_id"`
	Version string `json:"version"` // the key of its standing records
}

type payloadRef struct {
	Invocation string `json:"invocation_id"`
	Ref        string `json:"ref"`
}

// Write makes a bundle of the journal in the Keeper's directory: a tar.gz of the files' chains, and
// of the lines that sel means. The chains are to be extended before.
func (k *Keeper) Write(out io.Writer, sel Selection) error {
	key, err := k.Key()
	if err != nil {
		return err
	}
	names, err := persist.Files(k.dir)
	if err != nil {
		return err
	}
	kept, err := keptHeads(k.keyFile, key)
	if err != nil {
		return err
	}
	zipped := gzip.NewWriter(out)
	b := bundle{Selection: sel, kept: kept, tar: tar.NewWriter(zipped),
		stated: statement{Object: objectStatement, Version: statementVersion,
			MadeAt: time.Now().UTC(), Hub: sel.Hub, Query: sel.Query, Key: key.Public().(ed25519.PublicKey),
			Policy: sel.Policy}}
	for _, name := range names {
		if err := b.file(k.dir, name); err != nil {
			return fmt.Errorf("export %q: %w", name, err)
		}
	}
	line, err := sign(key, b.stated)
	if err == nil {
		err = b.member(statementName, line)
	}
	return errors.Join(err, b.tar.Close(), zipped.Close())
}

// bundle is one Write.
type bundle struct {
	Selection
	tar    *tar.Writer
	stated statement
	kept   map[string]headRef
}

func (b *bundle) member(name string, text []byte) error {
	err := b.tar.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text)), ModTime: b.stated.MadeAt,
		Format: tar.FormatPAX})
	if err == nil {
		_, err = b.tar.Write(text)
	}
	return err
}

// file adds a file's chain, up to its last head, and those of its lines that are wanted.
func (b *bundle) file(dir, name string) error {
	unlock, err := statefile.Lock(filepath.Join(dir, "chain")) // nothing is erased meanwhile
	if err != nil {
		return err
	}
	defer unlock()
	text, err := os.ReadFile(filepath.Join(dir, name+Suffix))
	kept, known := b.kept[name]
	if errors.Is(err, fs.ErrNotExist) && (known || size(filepath.Join(dir, name)) == 0) {
		if known {
			b.stated.Files = append(b.stated.Files, statedFile{File: name, Lines: kept.Lines})
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("it has no chain yet: %w", err)
	}
	if last := bytes.LastIndex(text, []byte(headPrefix)); last >= 0 {
		text = text[:last+1+bytes.IndexByte(text[last:], '\n')]
	}
	file, err := os.Open(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a hub has removed it meanwhile, as it has others before
	}
	if err != nil {
		return err
	}
	defer file.Close()
	var records bytes.Buffer
	names, n := make(map[int64]string), int64(0)
	chain, err := rewrite(text, bufio.NewReaderSize(file, 64<<10), func(e *entry, line []byte) error {
		n++
		if line != nil {
			if line = line[:len(line)-1]; !b.Line(line) {
				*e = entry{Digest: e.link()}
				return nil
			}
			b.note(line)
			if o := tool.Object(rawjson.Text(line, "object")); len(b.Without) > 0 &&
				(o == persist.ObjectCall || o == persist.ObjectTask) {
				line = e.erase(line, false,
					func(under, key string, _ []byte) bool { return slices.Contains(b.Without, cmp.Or(under, key)) })
			}
			records.Write(append(line, '\n'))
		} // else it is missed
		names[n] = e.Of
		return nil
	})
	if err != nil {
		return err
	}
	if len(chain) > maxChain {
		return fmt.Errorf("its chain has more than %d MiB: select fewer calls, or leave less out", maxChain>>20)
	}
	b.stated.Files = append(b.stated.Files, statedFile{name, max(n, kept.Lines), names})
	err = b.member(journalDir+name+Suffix, chain)
	if err == nil && records.Len() > 0 {
		err = b.member(journalDir+name, records.Bytes())
	}
	return err
}

var (
	refs     = regexp.MustCompile(`"(?:sha256|hmac-sha256):[0-9a-f]{64};bytes=\d+"`)
	policies = regexp.MustCompile(`"policy:[a-z0-9:]+"`)
)

// note adds to the statement what a line names.
func (b *bundle) note(line []byte) {
	s := &b.stated
	switch tool.Object(rawjson.Text(line, "object")) {
	case persist.ObjectCall, persist.ObjectTask:
		for _, ref := range refs.FindAll(line, -1) {
			p := payloadRef{rawjson.Text(line, "invocation_id"), string(bytes.Trim(ref, `"`))}
			if !slices.Contains(s.Payloads[max(0, len(s.Payloads)-10):], p) {
				s.Payloads = append(s.Payloads, p)
			}
		}
		for _, ref := range policies.FindAll(line, -1) {
			if p := string(bytes.Trim(ref, `"`)); !slices.Contains(s.Policies, p) {
				s.Policies = append(s.Policies, p)
			}
		}
	case persist.ObjectStanding:
		records, _ := rawjson.Get(line, "records")
		_ = rawjson.Elements(records, func(r []byte) bool {
			v := toolVersion{rawjson.Text(r, "tool_id"), rawjson.Text(line, "key")}
			if v.Tool != "" && !slices.Contains(s.Tools, v) {
				s.Tools = append(s.Tools, v)
			}
			return true
		})
	}
}
