package splice

import (
	"slices"

	"github.com/aymanbagabas/go-udiff"
)

// step is a Put or a Take: how a file has come of another one.
type step struct {
	from  *File
	edits []edit // of from's body
	place Place
	name  string
}

// Undo takes back in current the steps that have led to made: Takes, and then one Put. Others have
// written current over made. What the steps took out stands where it stood, byte for byte, and all
// that others have written stays. Undo returns nil where they have written within an edit of a
// step.
func Undo(made, current *File) *File {
	was, is := string(made.body), string(current.body)
	for _, theirs := range [][]udiff.Edit{{oneEdit(was, is)}, udiff.Lines(was, is), udiff.Strings(was, is)} {
		for _, behind := range []bool{true, false} {
			f, edits, ok := made, theirs, true
			for ; f.last != nil && ok; f = f.last.from {
				edits, ok = f.last.before(edits, behind)
			}
			if !ok {
				continue
			}
			body, err := udiff.Apply(string(f.body), edits)
			if err != nil {
				continue
			}
			if f, err = Read(f.Format, slices.Concat(current.bom, []byte(body))); err == nil &&
				made.last.leads(f, current) {
				return f
			}
		}
	}
	return nil
}

// oneEdit returns the edit that makes is of was.
func oneEdit(was, is string) udiff.Edit {
	from, end := 0, 0
	for from < min(len(was), len(is)) && was[from] == is[from] {
		from++
	}
	for end < min(len(was), len(is))-from && was[len(was)-1-end] == is[len(is)-1-end] {
		end++
	}
	return udiff.Edit{Start: from, End: len(was) - end, New: is[from : len(is)-end]}
}

// before returns edits of the file after the step as edits of the file before it. behind says where
// text goes that stands where the step took something out: behind that, or before it.
func (s *step) before(theirs []udiff.Edit, behind bool) (moved []udiff.Edit, ok bool) {
	for _, t := range theirs {
		longer := 0 // by the step, up to t
		for _, ours := range s.edits {
			from := ours.from + longer
			to := from + len(ours.text)
			if before := t.End <= from; before && !(behind && t.Start == to) {
				break
			} else if t.Start < to {
				return nil, false
			}
			longer += len(ours.text) - (ours.to - ours.from)
		}
		moved = append(moved, udiff.Edit{Start: t.Start - longer, End: t.End - longer, New: t.New})
	}
	return moved, true
}

// leads reports whether the steps up to s, a Put, make of f what now says, apart from the entry that s has put there.
func (s *step) leads(f, now *File) bool {
	for t := s.from.last; t != nil; t = t.from.last {
		e := f.Entry(t.place, t.name)
		if e == nil || !Equal(e.Value, t.from.Entry(t.place, t.name).Value) {
			return false
		}
		var err error
		if f, err = f.TakeKeepingKey(t.place, t.name); err != nil {
			return false
		}
	}
	return f.Entry(s.place, s.name) == nil && sameBut(f.Root, now.Root, s.place, s.name)
}
