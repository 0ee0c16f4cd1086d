package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/admit"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/child"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/fault"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/lists"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/transport"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/wait"
)

// Names of the steps of Diagnose, in their order.
const (
	StepCommand    = "command"    // stdio: the program is there
	StepAddress    = "address"    // http, sse: the host resolves and answers
	StepStart      = "start"      // stdio: the child runs
	StepInitialize = "initialize" // who it is and which protocol it speaks
	StepList       = "list"       // all pages of tools/list
	StepSchemas    = "schemas"    // what of that is admitted
	// all pages of the lists of prompts, resources and templates, where the server has them
	StepFeatures = "features"
	StepPing     = "ping" // it still answers
)

// Step is one step of Diagnose. None of its texts holds a secret or a control character.
type Step struct {
	Name   string
	OK     bool
	Detail string // what was found, or why it failed
	Hint   string // what to do about it; may be empty
	Took   time.Duration

	// Lines say more, at most maxStepLines of them: what was repaired and excluded, warnings, and
	// for a step that failed what the child wrote to stderr: the last lines, and the one that says
	// what is wrong.
	Lines []string
}

const (
	maxStepLines   = 40
	maxStderrLines = 10
)

// Diagnose walks the server id of cfg through every step until it answers calls, in the way in
// which a Group does it, and reports each step as soon as it is known. It ends after the first step
// that fails. Whatever it has started is gone when it returns. Disabled servers are walked through
// too; nothing is kept in cfg.Catalogs. An error means that there was nothing to walk through, or
// that ctx has ended; a step that fails is none.
func Diagnose(ctx context.Context, cfg Config, id string, report func(Step)) error {
	at := slices.IndexFunc(cfg.Servers, func(s ServerConfig) bool { return s.ID == id })
	if at < 0 {
		return fmt.Errorf("diagnose server %q: there is none of this id: use one of %s", id,
			strings.Join(cfg.IDs(), ", "))
	}
	cfg.Servers, cfg.Catalogs = slices.Clone(cfg.Servers[at:at+1]), nil
	cfg.Servers[0].Disabled = false
	heard := &hearing{}
	g, err := NewGroup(cfg, slog.New(heard))
	if err != nil {
		return err
	}
	s := g.roster.Load().byID[id]
	d := &diagnosis{server: s, heard: heard, report: report}
	d.walk(ctx)
	s.finish()
	if err := g.launcher.Close(); err != nil {
		return err
	}
	return ctx.Err()
}

// IDs returns the ids of the servers, in their order.
func (c Config) IDs() []string {
	var all []string
	for _, s := range c.Servers {
		all = append(all, s.ID)
	}
	return all
}

// diagnosis is one walk.
type diagnosis struct {
	server *server
	heard  *hearing
	report func(Step)
	began  time.Time // of the step under way
}

// done reports the step that is under way, and reports whether the walk goes on.
func (d *diagnosis) done(step Step, f *fault.Fault) bool {
	step.Took = time.Since(d.began)
	step.OK = f == nil
	step.Lines = append(step.Lines, d.heard.take()...)
	if f != nil {
		step.Detail, step.Hint = f.What, f.Hint
		for _, line := range d.stderr() {
			step.line("stderr: %s", line)
		}
	}
	show := func(text string) string { return d.server.redact.Beginning(text, secret.MaxMessage) }
	step.Detail, step.Hint = show(step.Detail), show(step.Hint)
	for i, line := range step.Lines {
		step.Lines[i] = show(line)
	}
	if over := len(step.Lines) - maxStepLines; over > 0 {
		step.Lines = append(step.Lines[:maxStepLines-1:maxStepLines-1], fmt.Sprintf("and %d more", over+1))
	}
	d.report(step)
	d.began = time.Now()
	return step.OK
}

// stderr returns the last child's last lines, and before them the one that says what is wrong where it is not among
// them.
func (d *diagnosis) stderr() []string {
	if d.server.connector.child == nil {
		return nil
	}
	lines := d.server.connector.child.Wrote()
	if over := len(lines) - maxStderrLines; over > 0 {
		cause := child.Cause(lines)
		lines = lines[over:]
		if !slices.Contains(lines, cause) {
			lines[0] = cause
		}
	}
	return lines
}

func (d *diagnosis) walk(ctx context.Context) {
	s := d.server
	d.began = time.Now()
	if !d.find(ctx) {
		return
	}
	sess, f := s.connector.connect(ctx)
	if ctx.Err() != nil {
		if sess != nil {
			sess.shut()
		}
		return
	}
	if s.connector.http == nil {
		if s.connector.child == nil {
			d.done(Step{Name: StepStart}, f)
			return
		}
		// Connecting starts and initialises in one: the time of both is the next step's.
		d.report(Step{Name: StepStart, OK: true, Detail: fmt.Sprintf("process %d", s.connector.child.PID())})
	}
	if f != nil {
		d.done(Step{Name: StepInitialize}, f)
		return
	}
	defer sess.shut()
	d.done(Step{Name: StepInitialize, Detail: d.hello(sess)}, nil)
	d.use(ctx, sess)
}

// find looks for the program, or for the host, that connecting will need.
func (d *diagnosis) find(ctx context.Context) bool {
	s := d.server
	if f := missing(s.cfg); f != nil {
		step := StepCommand
		if s.cfg.Transport != Stdio {
			step = StepAddress
		}
		return d.done(Step{Name: step}, f)
	}
	if s.connector.http == nil {
		path, f := s.group.launcher.Find(s.cfg)
		return d.done(Step{Name: StepCommand, Detail: s.redact.Text(path)}, f)
	}
	target, via := s.connector.http.URL, ""
	proxy, err := s.connector.http.Pool.Proxy(&http.Request{URL: target})
	if err == nil && proxy != nil {
		target, via = proxy, "proxy "
	}
	var conn net.Conn
	if err == nil {
		limited, cancel := context.WithTimeout(ctx, s.cfg.Timeouts.Connect)
		conn, err = s.connector.http.Pool.DialContext(limited, "tcp",
			net.JoinHostPort(target.Hostname(), transport.Port(target)))
		cancel()
	}
	if ctx.Err() != nil {
		return false
	}
	if err != nil {
		return d.done(Step{Name: StepAddress}, fault.OfConnect(s.cfg, err, s.redact))
	}
	detail := fmt.Sprintf("%s%s answers at %s", via, target.Host, conn.RemoteAddr())
	_ = conn.Close()
	return d.done(Step{Name: StepAddress, Detail: s.redact.Text(detail)}, nil)
}

// hello says what is known of the server after initialize.
func (d *diagnosis) hello(sess *session) string {
	text, show := "protocol "+sess.version, d.server.redact.Text
	if sess.info.Name != "" {
		text += fmt.Sprintf(", server %q, version %q", show(sess.info.Name), show(sess.info.Version))
	}
	st := d.server.status()
	if st.SignIn != nil && len(st.SignIns) == 0 {
		text += ", " + st.SignIn.String()
	}
	for _, one := range st.SignIns {
		text += "; " + one.String()
	}
	return text
}

// use does what the hub does with a session.
func (d *diagnosis) use(ctx context.Context, sess *session) {
	s := d.server
	tools, f := s.list(ctx, sess, lists.Tools)
	if ctx.Err() != nil {
		return
	}
	if f != nil && wait.IsClosed(sess.ended) {
		f = sess.reason
	}
	listed := count(len(tools.raw), "tool")
	if !sess.offers(lists.ToolKind) {
		listed = "the server says that it offers no tools"
	}
	if !d.done(Step{Name: StepList, Detail: listed}, f) ||
		!d.done(d.schemas(admit.Offer{
			Lists: [lists.Count][]json.RawMessage{lists.Tools: tools.raw},
		}.Admit(s.cfg, s.redact))) {
		return
	}
	if (sess.offers(lists.PromptKind) || sess.offers(lists.ResourceKind)) && !d.features(ctx, sess) {
		return
	}
	f = s.verify(ctx, sess)
	if ctx.Err() == nil {
		d.done(Step{Name: StepPing, Detail: "answered"}, f)
	}
}

// schemas is the step that looks at what was listed. Tools that are left out are the others' no
// loss: it fails where none is left.
func (d *diagnosis) schemas(l *admit.Listing) (Step, *fault.Fault) {
	c := l.Catalog
	step := Step{Name: StepSchemas,
		Detail: fmt.Sprintf("%d admitted, %d of them repaired, %d excluded",
			len(c.Tools), l.Repaired, len(c.Excluded))}
	step.excluded(c.Excluded)
	for _, t := range c.Tools {
		for _, r := range t.Repairs {
			step.line("repaired: %s, %s: %s", t.Name, r.Part, r.Reason)
		}
	}
	for _, f := range l.Findings {
		step.line("look at: %s: %s", f.About, f.Reason)
	}
	if len(c.Tools) == 0 && len(c.Excluded) > 0 {
		return step, &fault.Fault{What: step.Detail,
			Hint: "correct the tools on the server, or report this to whoever maintains it"}
	}
	return step, nil
}

func (s *Step) line(format string, args ...any) {
	s.Lines = append(s.Lines, fmt.Sprintf(format, args...))
}

func (s *Step) excluded(all []tool.Exclusion) {
	for _, e := range all {
		s.line("excluded: %s (%s): %s", e.Tool, e.Code, e.Reason)
	}
}

// features is the step that lists what there is besides tools. A list that cannot be read costs
// nothing but itself, as it does in a Group, and is said.
func (d *diagnosis) features(ctx context.Context, sess *session) bool {
	s := d.server
	var o admit.Offer
	var found []string
	step := Step{Name: StepFeatures}
	for l := lists.Prompts; l < lists.Count; l++ {
		if !sess.offers(l.Kind()) {
			continue
		}
		read, f := s.list(ctx, sess, l)
		switch {
		case ctx.Err() != nil:
			return false
		case f != nil && wait.IsClosed(sess.ended):
			return d.done(step, sess.reason)
		case f != nil:
			step.line("not listed: %ss: %s: %s", l.Noun(), f.What, f.Hint)
		default:
			o.Lists[l] = read.raw
			found = append(found, count(len(read.raw), l.Noun()))
		}
	}
	step.excluded(o.Admit(s.cfg, s.redact).Catalog.Excluded)
	step.Detail = cmp.Or(strings.Join(found, ", "), "none can be listed")
	return d.done(step, nil)
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// hearing keeps the warnings that are logged of a server while it is diagnosed. They are fit to be shown already.
type hearing struct {
	mu       sync.Mutex
	warnings []string
}

// take returns the warnings since the last time.
func (h *hearing) take() (warnings []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	warnings, h.warnings = h.warnings, nil
	return warnings
}

// Enabled implements slog.Handler.
func (h *hearing) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Handle implements slog.Handler.
func (h *hearing) Handle(_ context.Context, r slog.Record) error {
	more := ""
	r.Attrs(func(a slog.Attr) bool {
		more += fmt.Sprintf(", %s: %s", a.Key, a.Value)
		return true
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.warnings) < maxStepLines {
		h.warnings = append(h.warnings, "warning: "+r.Message+hidden.Line(more))
	}
	return nil
}

// WithAttrs implements slog.Handler.
func (h *hearing) WithAttrs([]slog.Attr) slog.Handler { return h }

// WithGroup implements slog.Handler.
func (h *hearing) WithGroup(string) slog.Handler { return h }

var _ slog.Handler = (*hearing)(nil)
