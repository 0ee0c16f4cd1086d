package evidence

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// Bounds of what a stranger's bundle may make Verify read and hold.
const (
	maxChain     = 128 << 20 // a chain
	maxLine      = 64 << 20  // a line
	maxStatement = 32 << 20
	maxHeads     = 200_000 // of all files
	maxFiles     = 10_000
	maxFindings  = 1000
	maxTries     = 32 // entries of one name that a line is held against
)

// ErrNoBundle is the error of a file that is no bundle, or one that is larger than bundles are.
var ErrNoBundle = errors.New("the file is no evidence bundle, or is cut off")

// Report is what Verify has found.
type Report struct {
	Key      []byte    `json:"key"` // that has signed
	MadeAt   time.Time `json:"made_at"`
	Hub      string    `json:"hub,omitempty"`
	Query    string    `json:"query,omitempty"`
	Lines    int64     `json:"lines"`   // of which the chains have digests
	Records  int       `json:"records"` // lines that the bundle has, and that were checked
	Erased   int       `json:"erased"`  // of these: lines with values that were left out
	Findings []Finding `json:"findings"`
	More     int       `json:"more_findings,omitempty"` // that are not listed
}

// Finding is one thing that is not as it was.
type Finding struct {
	What   string `json:"what"` // altered, removed, moved, added, chain, head, statement
	File   string `json:"file,omitempty"`
	Line   int64  `json:"line,omitempty"`   // of the journal file; 0 where that is not known
	Record string `json:"record,omitempty"` // the invocation that the line is of, as it says
	Detail string `json:"detail,omitempty"`
}

// Verify checks a bundle. An error means that it cannot be read.
func Verify(r io.Reader) (*Report, error) {
	zipped, err := gzip.NewReader(r)
	if err != nil {
		return nil, errors.Join(ErrNoBundle, err)
	}
	return verify(zipped)
}

// verify is Verify for the tar in the bundle.
func verify(r io.Reader) (*Report, error) {
	v := verifier{files: make(map[string]*proven)}
	for members := tar.NewReader(r); ; {
		member, err := members.Next()
		if err == io.EOF {
			break
		}
		if err == nil {
			err = v.member(member.Name, members)
		}
		if err != nil {
			return nil, errors.Join(ErrNoBundle, err)
		}
	}
	v.finish()
	v.compare()
	return &v.report, nil
}

type verifier struct {
	report  Report
	files   map[string]*proven
	current *proven // whose lines are still to come
	stated  *statement
	heads   int
	unread  int
}

// proven is what the chain of a file says.
type proven struct {
	name  string
	lines int64
	open  []openEntry
	ended bool // its lines were looked at
}

type openEntry struct {
	entry
	line int64
}

func (v *verifier) found(f Finding) {
	if len(v.report.Findings) == maxFindings {
		v.report.More++
		return
	}
	v.report.Findings = append(v.report.Findings, f)
}

// member takes a member of the bundle.
func (v *verifier) member(name string, r io.Reader) error {
	switch file, inJournal := strings.CutPrefix(name, journalDir); {
	case name == statementName && v.stated == nil:
		return v.statement(r)
	case inJournal && strings.HasSuffix(file, Suffix) && v.files[strings.TrimSuffix(file, Suffix)] == nil &&
		len(v.files) < maxFiles:
		v.finish()
		return v.chain(strings.TrimSuffix(file, Suffix), r)
	case inJournal && v.current != nil && v.current.name == file && !v.current.ended:
		return v.records(r)
	}
	v.found(Finding{What: "added", Detail: fmt.Sprintf("the bundle has a member %.200q that does not belong there",
		name)})
	return nil
}

// eachBounded calls take for each line of r.
func eachBounded(r io.Reader, all int64, take func(line []byte) error) error {
	limited := &io.LimitedReader{R: r, N: all}
	lines := bufio.NewScanner(limited)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	for lines.Scan() {
		if err := take(lines.Bytes()); err != nil {
			return err
		}
	}
	if limited.N == 0 {
		return errors.New("a member is too large")
	}
	return lines.Err()
}

// chain takes the chain of a file.
func (v *verifier) chain(name string, r io.Reader) error {
	p := &proven{name: name}
	v.files[name], v.current = p, p
	at, covered := chainStart(name), int64(0)
	err := eachBounded(r, maxChain, func(line []byte) error {
		if bytes.HasPrefix(line, []byte(headPrefix)) {
			h, ok := v.head(name, line)
			switch {
			case !ok:
				return nil
			case h.Lines != p.lines || h.Chain != at:
				v.found(Finding{What: "chain", File: name, Line: covered + 1, Detail: fmt.Sprintf(
					"digests from line %d on were altered, removed or added: they are not those that were signed up "+
						"to line %d", covered+1, h.Lines)})
			}
			if v.heads++; v.heads > maxHeads {
				return errors.New("it has more heads than bundles have")
			}
			p.lines, at, covered = max(p.lines, h.Lines), h.Chain, h.Lines
			return nil
		}
		var e entry
		if json.Unmarshal(line, &e) != nil || e.Digest == (digest{}) {
			if v.unread++; v.unread > maxFindings {
				return errors.New("its chains cannot be read")
			}
			v.found(Finding{What: "chain", File: name, Line: p.lines + 1, Detail: "its digest cannot be read"})
		}
		p.lines, at = p.lines+1, at.next(e.link())
		if e.isOpen() {
			p.open = append(p.open, openEntry{entry: e, line: p.lines})
		}
		return nil
	})
	if covered < p.lines {
		v.found(Finding{What: "head", File: name, Line: covered + 1,
			Detail: fmt.Sprintf("lines %d to %d are under no signature", covered+1, p.lines)})
	}
	v.report.Lines += p.lines
	return err
}

// verified reads what the key of the bundle has signed.
func (v *verifier) verified(line []byte, into any) bool {
	var s signed
	var by struct {
		Key []byte `json:"key"`
	}
	if json.Unmarshal(line, &s) != nil || json.Unmarshal(s.Head, into) != nil || json.Unmarshal(s.Head, &by) != nil ||
		!s.by(by.Key) {
		return false
	}
	if v.report.Key == nil {
		v.report.Key = by.Key
	}
	return bytes.Equal(v.report.Key, by.Key)
}

func (v *verifier) head(name string, line []byte) (h head, ok bool) {
	if !v.verified(line, &h) || h.File != name {
		v.found(Finding{What: "head", File: name, Line: h.Lines,
			Detail: "a head is not signed by the key of the bundle, or is another file's"})
		return h, false
	}
	return h, true
}

func (v *verifier) statement(r io.Reader) error {
	v.finish()
	text, err := io.ReadAll(io.LimitReader(r, maxStatement))
	if err != nil {
		return err
	}
	v.stated = &statement{}
	if !v.verified(text, v.stated) ||
		v.stated.Object != objectStatement {
		v.found(Finding{What: "statement", Detail: "what the bundle says of itself is not signed by its key"})
		v.stated = &statement{Version: -1}
		return nil
	}
	if v.stated.Version != statementVersion {
		return fmt.Errorf("it is of version %d, which another program has made: check it with that", v.stated.Version)
	}
	v.report.MadeAt, v.report.Hub, v.report.Query = v.stated.MadeAt, v.stated.Hub, v.stated.Query
	return nil
}

// finish names what is missing of a file whose lines did not come.
func (v *verifier) finish() {
	if p := v.current; p != nil && !p.ended {
		_ = v.records(bytes.NewReader(nil))
	}
}

// compare holds what was found against the statement.
func (v *verifier) compare() {
	if v.stated == nil {
		v.found(Finding{What: "statement", Detail: "the bundle does not say what it should hold: it was cut off"})
		v.stated = &statement{Version: -1}
	}
	stated := make(map[string]bool)
	for _, f := range v.stated.Files {
		stated[f.File] = true
		p, opened := v.files[f.File], map[int64]bool{} // lines that the chain can check
		if p != nil {
			for _, e := range p.open {
				opened[e.line] = true
			}
		}
		switch {
		case p == nil:
			v.found(Finding{What: "removed", File: f.File,
				Detail: fmt.Sprintf("the whole file, of %d lines, or its chain", f.Lines)})
		case p.lines != f.Lines:
			v.found(Finding{What: "removed", File: f.File,
				Detail: fmt.Sprintf("the bundle should have digests of %d lines, and has %d", f.Lines, p.lines)})
		}
		for _, line := range slices.Sorted(maps.Keys(f.Names)) {
			if !opened[line] {
				v.found(finding("removed", f.File, line, f.Names[line]))
			}
		}
	}
	for name := range v.files {
		if !stated[name] && v.stated.Version > 0 {
			v.found(Finding{What: "added", File: name, Detail: "the bundle was made without this file"})
		}
	}
}

// strangeLine is a line that the chain does not prove.
type strangeLine struct {
	name  string
	after int64 // the line before it that the chain proves
}

// records holds the lines of the current file against its chain.
func (v *verifier) records(r io.Reader) error {
	p := v.current
	p.ended = true
	missed := make(map[string][]int) // by name: those of p.open whose lines have not come
	for i := range p.open {
		missed[p.open[i].Of] = append(missed[p.open[i].Of], i)
	}
	var places []int // in p.open, of the lines that it proves
	var strange []strangeLine
	err := eachBounded(r, 1<<62, func(line []byte) error {
		if len(places)+len(strange) > len(p.open)+maxFindings {
			return errors.New("it has more lines than its chain")
		}
		leaves := leavesOf(nil, line)
		name := nameOf(leaves)
		all := missed[name]
		at := slices.IndexFunc(all[:min(len(all), maxTries)], func(i int) bool {
			d, fits := p.open[i].digestOf(leaves)
			return fits && d == p.open[i].Digest
		})
		if at < 0 {
			s := strangeLine{name: name}
			if n := len(places); n > 0 {
				s.after = p.open[places[n-1]].line
			}
			strange = append(strange, s)
			return nil
		}
		place := all[at]
		copy(all[1:at+1], all[:at])
		missed[name], places = all[1:], append(places, place)
		if v.report.Records++; p.open[place].Leaves != nil {
			v.report.Erased++
		}
		return nil
	})
	v.tell(p, places, strange, missed)
	return err
}

// tell names what is not as it was. A line that comes behind a later one was moved, or that one was. A
// strange line with the name of a missed one is that, altered.
func (v *verifier) tell(p *proven, places []int, strange []strangeLine, missed map[string][]int) {
	for i := 1; i < len(places); i++ {
		if e := &p.open[places[i]]; places[i] < places[i-1] {
			v.found(finding("moved", p.name, e.line, e.Of))
		}
	}
	for _, s := range strange {
		if all := missed[s.name]; len(all) > 0 {
			v.found(finding("altered", p.name, p.open[all[0]].line, s.name))
			missed[s.name] = all[1:]
			continue
		}
		f := finding("added", p.name, 0, s.name)
		if f.Detail = ""; s.after > 0 {
			f.Detail = fmt.Sprintf("after line %d", s.after)
		}
		v.found(f)
	}
	var removed []int
	for _, all := range missed {
		removed = append(removed, all...)
	}
	slices.Sort(removed)
	for _, i := range removed {
		v.found(finding("removed", p.name, p.open[i].line, p.open[i].Of))
	}
}

// finding is one about a line, which the chain names so.
func finding(what, file string, line int64, name string) Finding {
	object, id, _ := strings.Cut(name, " ")
	return Finding{What: what, File: file, Line: line, Record: fmt.Sprintf("%.100s", id),
		Detail: fmt.Sprintf("%.100s", object)}
}
