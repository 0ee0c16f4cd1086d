package history

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// Bounds of what is left out of a directory.
const (
	maxBut   = 12 // directories and files
	maxFiles = 3  // of them files, which say little of the next one; more among many calls
)

// cover finds the fewest directories that hold the places of calls that people allowed, and none
// that they denied. A directory is one that answers would be remembered for, or holds Least of
// these. Paths are absolute and clean.
type cover struct {
	home   string
	times  map[string]int // calls by directory
	denied []string       // paths

	found area
}

// area returns the directories. paths are those that people allowed.
func (c *cover) area(paths []string) *area {
	// it was not for the path
	c.denied = slices.DeleteFunc(c.denied, func(p string) bool { return slices.Contains(paths, p) })
	c.endings(paths)
	tops := make(map[string]bool)
	for dir := range c.times {
		top := dir
		for at := path.Dir(dir); strings.HasPrefix(dir, "/") && at != path.Dir(at); at = path.Dir(at) {
			top = at
		}
		tops[top] = true
	}
	for _, top := range slices.Sorted(maps.Keys(tops)) {
		c.take(top)
	}
	return &c.found
}

// holds reports whether a path lies in one of the places.
func (c *cover) holds(p string) bool {
	for dir := range c.times {
		if beneath(p, dir) {
			return true
		}
	}
	return false
}

// take takes dir, or the directories beneath it.
func (c *cover) take(dir string) {
	calls, children := 0, make(map[string]bool)
	for one, n := range c.times {
		if beneath(one, dir) {
			calls += n
			if one != dir {
				children[path.Join(dir, first(one[len(dir):]))] = true
			}
		}
	}
	own := c.times[dir] > 0
	if calls >= Least && (own || c.isArea(dir) && len(children) >= Least) {
		if but, ok := c.but(dir, own, calls, len(children)); ok {
			c.found.under, c.found.but = append(c.found.under, dir), append(c.found.but, but...)
			return
		}
	}
	for _, child := range slices.Sorted(maps.Keys(children)) {
		c.take(child)
	}
}

// but is what has to be left out of dir: as much as nobody allowed anything in. ok is false where that is too much.
func (c *cover) but(dir string, own bool, calls, children int) (but []string, ok bool) {
	files := 0
	for _, p := range c.denied {
		if !beneath(p, dir) {
			continue
		}
		out := p
		for at := path.Dir(p); at != dir && beneath(at, dir) && !c.allowedIn(at); at = path.Dir(at) {
			out = at
		}
		if !slices.Contains(but, out) {
			if but = append(but, out); out == p {
				files++
			}
		}
	}
	return but, len(but) <= maxBut && (files <= maxFiles || slips(files, calls)) && (own || len(but)-files <= children)
}

// allowedIn reports whether a place is in dir, or is the directory of it.
func (c *cover) allowedIn(dir string) bool {
	for one := range c.times {
		if beneath(one, dir) {
			return true
		}
	}
	return false
}

// isArea reports whether dir may be named though nobody was asked about it itself: it is not the
// root or right beneath it, and not the user's directory or above that.
func (c *cover) isArea(dir string) bool {
	parent := path.Dir(dir)
	return parent != dir && path.Dir(parent) != parent && !beneath(c.home, dir)
}

// beneath reports whether p is dir or in it.
func beneath(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

// parentOf is the directory of p; p itself for a path of another system.
func parentOf(p string) string {
	if !strings.HasPrefix(p, "/") {
		return p
	}
	return path.Dir(p)
}

func first(rest string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
	return name
}

// endings finds the endings of names that people allow, where these tell most of what they denied
// in the same places from it.
func (c *cover) endings(allowed []string) {
	ends := func(paths []string) (all []string) {
		for _, p := range paths {
			all = append(all, path.Ext(p))
		}
		return all
	}
	held := slices.DeleteFunc(slices.Clone(c.denied), func(p string) bool { return !c.holds(p) })
	found := kinds(ends(allowed), ends(held), func(end string) string { return end })
	has := func(p string) bool { return slices.Contains(found, path.Ext(p)) }
	left := slices.DeleteFunc(slices.Clone(held), func(p string) bool { return !has(p) })
	if len(found) == 0 || len(found) > maxListed/2 || 2*len(left) > len(held) {
		return
	}
	c.found.endings = found
	c.denied = slices.DeleteFunc(c.denied, func(p string) bool { return !has(p) })
}
