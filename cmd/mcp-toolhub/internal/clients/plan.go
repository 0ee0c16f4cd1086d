package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/run"
	"github.com/mcp-toolhub/mcp-toolhub/internal/statefile"
)

// Do carries out all plans, or none.
func (s *Connections) Do(ctx context.Context, plans []*Plan) (err error) {
	was := map[string]*connection{}
	step := 1
	for id, r := range s.all {
		was[id], step = r, max(step, r.Step+1)
	}
	var changes []*Change
	var tools []*Plan
	var leftovers []string
	gone := func(key string, _ *connection) bool {
		return slices.ContainsFunc(plans, func(p *Plan) bool { return p.key == key && p.record == nil })
	}
	for _, p := range plans {
		old := s.all[p.key]
		var like *Document
		switch {
		case p.back:
			s.all[p.key], leftovers = p.record, append(leftovers, old.Was)
		case p.record != nil:
			if s.all[p.key] = p.record; p.record != old {
				p.record.Step = step
			}
		case old != nil && old.Backup != "":
			leftovers = append(leftovers, old.Backup)
			like = likeBackup(old)
		}
		if p.record == nil {
			leftovers = append(leftovers, old.copies()...)
		}
		backups, err := p.backups(old)
		if err != nil {
			return err
		}
		changes = append(changes, backups...)
		switch {
		case len(p.Commands) > 0:
			tools = append(tools, p)
		case !p.Nothing():
			changes = append(changes, &Change{Document: p.Doc, After: p.After, Like: like})
		}
	}
	// Of a connection the record comes first, and goes last: one of a change that was not made is
	// harmless, and after a kill in between the person can disconnect.
	if err := s.store(); err != nil {
		return err
	}
	if err := Apply(changes); err != nil {
		s.all = was
		return errors.Join(err, s.store())
	}
	for i, p := range tools {
		err, begun := p.Doc.unchanged(), i // what others have written meanwhile stays
		if err == nil {
			err, begun = p.run(ctx), i+1
			if err != nil && ctx.Err() == nil {
				p.Failed, err = err, p.write()
			}
		}
		if err != nil {
			for _, done := range slices.Concat(changes, undone(tools[:begun])) {
				err = errors.Join(err, done.takeBack())
			}
			s.all = was
			return errors.Join(err, s.store())
		}
	}
	for _, name := range leftovers {
		_ = os.Remove(name)
	}
	stored := len(s.all)
	maps.DeleteFunc(s.all, gone)
	if len(tools) > 0 || len(s.all) < stored {
		if err := s.store(); err != nil {
			return err
		}
	}
	return nil
}

// likeBackup returns the backup, whose mode a file gets that comes back; nil where it cannot be read.
func likeBackup(old *connection) *Document {
	d, err := Open(old.Backup)
	if err != nil {
		return nil
	}
	return d
}

func undone(plans []*Plan) []*Change {
	var all []*Change
	for _, p := range plans {
		all = append(all, &Change{Document: p.Doc})
	}
	return all
}

// backups returns the changes that write the backup, and the copy from before this connect, where
// they are needed and not up to date.
func (p *Plan) backups(old *connection) (all []*Change, err error) {
	r := p.record
	if r == nil || r == old {
		return nil, nil
	}
	if r.Was != "" && !p.back {
		d, err := Open(r.Was)
		if err != nil {
			return nil, err
		}
		all = append(all, &Change{Document: d, After: p.Doc.Raw, Like: p.Doc})
	}
	if r.Backup == "" {
		return all, nil
	}
	d, err := Open(r.Backup)
	if err == nil && (d.Raw == nil || sum(d.Raw) != r.Before) {
		all = append(all, &Change{Document: d, After: p.base, Like: p.Doc})
	}
	return all, err
}

// run runs the client's own commands, and checks that the file shows the result.
func (p *Plan) run(ctx context.Context) error {
	for _, words := range p.Commands {
		out, err := runWithin(ctx, toolLimit, words)
		if err != nil {
			return fmt.Errorf("run %s %s: %w: %s", filepath.Base(words[0]), strings.Join(words[1:3], " "), err,
				p.Mask(string(bytes.TrimSpace(out))))
		}
	}
	now, err := Open(p.Doc.Path)
	if err != nil {
		return err
	}
	f, err := ReadText(p.Format, now, p.Doc.Path)
	if err != nil {
		return err
	}
	if there := f.Entry(p.Place, EntryName) != nil; there != (p.record != nil) {
		return fmt.Errorf("%s: its command %s has run, and the file does not show it", p.Title, p.tool.program)
	}
	if p.record != nil {
		p.record.Path, p.record.After = now.Path, sum(now.Raw)
	}
	return nil
}

// toolLimit bounds one run of a client's own command, which changes a file and ends.
const toolLimit = 30 * time.Second

// runWithin runs a command, and returns what it prints. After limit it ends the command, and all that it has started.
func runWithin(ctx context.Context, limit time.Duration, words []string) ([]byte, error) {
	late := fmt.Errorf("it has not ended within %s", limit)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, late)
	defer cancel()
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.SysProcAttr = run.OwnGroup()
	cmd.Cancel = func() error { run.KillGroup(cmd); return nil }
	cmd.WaitDelay = time.Second // for output that something outside the group holds open
	out, err := cmd.CombinedOutput()
	if err != nil && context.Cause(ctx) == late {
		err = late
	}
	return out, err
}

// write changes the file, after a command has failed.
func (p *Plan) write() error {
	if err := (&Change{Document: p.Doc}).takeBack(); err != nil {
		return err
	}
	now, err := Open(p.Doc.Path)
	if err != nil {
		return err
	}
	if p.record != nil {
		p.record.Tool = false
	}
	return Apply([]*Change{{Document: now, After: p.After}})
}

func (s *Connections) store() error {
	data, err := json.MarshalIndent(s.all, "", "  ")
	if err == nil {
		err = statefile.Write(filepath.Join(s.state, recordFile), append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write the record of connections: %w", err)
	}
	return nil
}
