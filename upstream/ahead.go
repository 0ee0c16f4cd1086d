package upstream

import (
	"bytes"
	"sync"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// awaited reports whether somebody waits for the response with id. While that is not known id is "", and it reports
// whether somebody waits for any.
type awaited func(id string) bool

// lookout finds the large messages of one reader, so that their check begins before all of them was read.
type lookout struct {
	awaited awaited    // nil where nothing is checked ahead
	behind  string     // what comes before a message
	last    *digesting // that was begun; nil before the first
}

// begin returns what is done ahead with a message of which text was read, or nil if that does not begin as it should.
func (l *lookout) begin(text []byte) *ahead {
	if l == nil || l.awaited == nil || !bytes.HasPrefix(text, []byte(l.behind)) {
		return nil
	}
	if rest := bytes.TrimLeft(text[len(l.behind):], " \t\r\n"); len(rest) == 0 || rest[0] != '{' {
		return nil
	}
	return &ahead{look: l, check: rawjson.NewCheck(memberResult), at: len(l.behind)}
}

// ahead is what is done with a large message while the rest of it is still being read: it is checked, and another core
// computes the digest of its result.
type ahead struct {
	look  *lookout
	at    int    // where the message begins in what is read
	all   []byte // that was read, once it is complete
	seen  int    // how much of it was looked at
	check *rawjson.Check

	digest *digesting // of the result; nil where it was not begun
	from   int        // where the result begins in the message
	to     int        // up to where it was given to digest
	of     []byte     // the result; nil unless digest is that of a result
}

// stepAhead is how much more of a message must be there to be looked at.
const stepAhead = 64 << 10

// more looks at what was read since the last time.
func (a *ahead) more(read []byte) {
	if len(read)-a.seen < stepAhead {
		return
	}
	a.seen = len(read)
	message := read[a.at:]
	a.check.Add(message)
	a.hash(message)
}

// hash adds to the digest what is known of the result by now.
func (a *ahead) hash(message []byte) {
	from, to := a.check.Value()
	if a.digest == nil {
		if to-from < minMemory/4 || !a.isAwaited() {
			return
		}
		if a.look.last != nil {
			a.look.last.settle() // one at a time: results are not to come in faster than they are hashed
		}
		a.digest, a.from, a.to = newDigesting(), from, from
		a.look.last = a.digest
	}
	if from == a.from && to > a.to { // else there are two results, and the other one is not worth the effort
		a.digest.add(message[a.to:to])
		a.to = to
	}
}

// isAwaited reports whether the message, as far as it was checked, is a response for which somebody waits.
func (a *ahead) isAwaited() bool {
	raw, ok := a.check.Get("id")
	if !ok {
		return a.look.awaited("") // the servers of one SDK write the result first
	}
	id, ok := rawjson.String(raw)
	return ok && id != "" && a.look.awaited(id)
}

// parse parses the message, all of which was read.
func (a *ahead) parse() (message, result rawjson.Object, ok bool) {
	text := a.all[a.at:]
	message, result, ok = a.check.Finish(text)
	if a.digest == nil {
		return message, result, ok
	}
	a.hash(text)
	if from, to := a.check.Value(); ok && from == a.from && to == a.to {
		a.of = text[from:to]
		a.digest.finish()
	}
	return message, result, ok
}

// open takes the envelope off the message.
func (r received) open() (envelope, envelopeKind) {
	if r.ahead != nil {
		if message, result, ok := r.ahead.parse(); ok {
			return openParsed(r.text, parsed{message, result, ok, r.ahead.check.IsUTF8()})
		}
	}
	return open(r.text)
}

// digesting is the digest of a text that is being computed on another core.
type digesting struct {
	done chan struct{} // closed once sum is there
	sum  string

	mu       sync.Mutex
	idle     sync.Cond     // told when running becomes false
	running  bool          // a goroutine has text, or takes the next part
	parts    [][]byte      // that it has not taken
	finished bool          // there are no more to come
	text     tool.Digester // the goroutine's while it runs
}

func newDigesting() *digesting {
	d := &digesting{done: make(chan struct{}), text: tool.NewDigester()}
	d.idle.L = &d.mu
	return d
}

// digestOf is the digest of all of text.
func digestOf(text []byte) *digesting {
	d := newDigesting()
	d.add(text)
	d.finish()
	return d
}

// add appends part to the text. Nobody may change it until the digest is there, or settle returns.
func (d *digesting) add(part []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.parts = append(d.parts, part)
	d.run()
}

// finish says that the text is complete.
func (d *digesting) finish() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.finished = true
	d.run()
}

// run has what there is to do done. A goroutine runs no longer than there is something, so that a digest nobody is
// interested in any more needs no end. d.mu is held.
func (d *digesting) run() {
	if d.running {
		return
	}
	d.running = true
	go func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		for len(d.parts) > 0 {
			parts := d.parts
			d.parts = nil
			d.mu.Unlock()
			for _, part := range parts {
				d.text.Add(part)
			}
			d.mu.Lock()
		}
		if d.finished {
			d.sum = d.text.Digest()
			close(d.done)
		}
		d.running = false
		d.idle.Broadcast()
	}()
}

// settle waits until all parts were read that are there.
func (d *digesting) settle() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.running {
		d.idle.Wait()
	}
}

func (d *digesting) wait() string {
	<-d.done
	return d.sum
}

// in is the answer with what belongs to a large result: the memory that it was read into, and its digest.
func (a answer) in(got received) answer {
	if len(a.result) < minMemory {
		return a
	}
	if ahead := got.ahead; ahead != nil && ahead.digest != nil {
		if isSame(ahead.of, a.result) {
			a.got, a.digest = got, ahead.digest
			return a
		}
		ahead.digest.settle() // it reads the memory that the answer is going to free
	}
	a.got, a.digest = got, digestOf(a.result)
	return a
}
