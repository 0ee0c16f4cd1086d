package rawjson

// Check is Parse of a text that is still being received: what is there is checked while the rest is on its way. It is
// not for concurrent use.
type Check struct {
	v     checker
	pause pause
	utf8  utf8Check
	seen  int // bytes of text when it was last looked at
}

// NewCheck returns the check of a text of which nothing is known yet. name is as for Parse.
func NewCheck(name string) *Check {
	c := &Check{v: checker{keep: true, name: name, members: make([]Member, 0, 4)}}
	c.pause.value = true
	c.v.pause = &c.pause
	return c
}

// Add goes on with text, which begins with all that it was before, and may be elsewhere in memory. What is wrong with it
// is found by Finish.
func (c *Check) Add(text []byte) {
	c.utf8.add(text)
	// What was looked at in vain, as the inside of a number, is looked at again: so that this does not happen all too
	// often, there must be a good deal more.
	if len(text)-c.seen >= (c.seen-max(c.pause.at, c.pause.checked))/4 {
		c.run(text)
	}
}

// Finish is Parse of text, which begins with all that it was before and is complete now. It comes last.
func (c *Check) Finish(text []byte) (o, member Object, ok bool) {
	c.utf8.finish(text)
	if !c.run(text) {
		return Object{}, Object{}, false
	}
	o, member = c.v.objects()
	return o, member, true
}

// IsUTF8 reports whether all of the text is UTF-8. It comes after Finish.
func (c *Check) IsUTF8() bool { return !c.utf8.bad }

// Value returns where in the text the value of the member is that NewCheck named, as far as it was checked: of several,
// the last one. Without one, from and to are 0. What lies there is part of the value if the text is valid.
func (c *Check) Value() (from, to int) {
	v := &c.v
	if n := len(v.members); v.within && v.members[n-1].end == 0 {
		if from = v.members[n-1].valueAt; from <= c.pause.at { // else the value itself has not begun
			return from, max(c.pause.at, c.pause.checked)
		}
	}
	return v.from, v.to
}

// Get returns the value of the outermost object's member name, if all of it was checked.
func (c *Check) Get(name string) (value []byte, ok bool) {
	for i := len(c.v.members) - 1; i >= 0; i-- {
		if m := c.v.members[i]; m.end > 0 && m.Is(name) {
			return m.Value, true
		}
	}
	return nil, false
}

// run checks text from where the last run paused, and reports whether it is complete and valid.
func (c *Check) run(text []byte) bool {
	v, p := &c.v, &c.pause
	if c.seen > 0 && &v.text[0] != &text[0] {
		move(v.members, text)
		move(v.inner, text)
	}
	v.text, c.seen = text, len(text)
	v.depth, v.members, v.inner, v.within = p.depth, v.members[:p.members], v.inner[:p.inner], p.within
	if !p.value {
		return v.rest(p.at)
	}
	i, ok := v.value(v.space(p.at))
	return ok && v.rest(i)
}

// move makes members alias text, in which they are where they were in another one.
func move(members []Member, text []byte) {
	for i := range members {
		m := &members[i]
		m.Key = text[m.start+1 : m.start+1+len(m.Key)]
		if m.end > 0 {
			m.Value = text[m.valueAt:m.end]
		}
	}
}

// pause is where a check goes on, and what it knew there.
type pause struct {
	at             int
	value          bool // a value begins there; otherwise one has ended
	depth          int
	members, inner int // how many had begun
	within         bool

	begun   int // where the inside of a string begins that did not end
	checked int // up to where that was checked
}

func (v *checker) pauseAt(i int, value bool) {
	p := v.pause
	p.at, p.value, p.depth, p.members, p.inner, p.within = i, value, v.depth, len(v.members), len(v.inner), v.within
}

// string is checkString, and goes on where it could not the last time.
func (p *pause) string(text []byte, i int) (next int, ok bool) {
	from := i
	if p.begun == i {
		from = p.checked
	}
	next, ok = checkString(text, from)
	if !ok {
		p.begun, p.checked = i, next
	}
	return next, ok
}
