package policy

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/glob"
	"github.com/mcp-toolhub/mcp-toolhub/internal/guard"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// ClassifierConfig is an external program or address that is asked for its opinion of calls that no rule denies. It gets
// one JSON object (ClassifierRequest) on its standard input or as the body of a POST, arguments included without secrets, and answers with one
// (Opinion).
type ClassifierConfig struct {
	Command []string          `yaml:"command"` // program and arguments; either this or URL
	URL     string            `yaml:"url"`     // http or https
	Headers map[string]string `yaml:"headers"`
	Env     []string          `yaml:"-"`       // KEY=value, all that the command gets: not what the hub itself was given
	Timeout time.Duration     `yaml:"timeout"` // default 2 s, at most a minute; no answer until then means ask

	Match []string `yaml:"match"` // patterns of canonical names that it is asked about; default all
	Tags  []string `yaml:"tags"`  // or tags; where both are given, one of each must match

	MayAllow      bool    `yaml:"may_allow"`      // its "allow" spares the question; otherwise it can only tighten
	MinConfidence float64 `yaml:"min_confidence"` // an "allow" below it is taken for "ask"; 0 to 1
}

// Problems reports every problem of c, each as a Problem, joined; nil where there is none.
func (c *ClassifierConfig) Problems() error {
	var problems []error
	add := func(key, message, hint string) {
		problems = append(problems, Problem{Key: key, Message: message, Hint: hint})
	}
	if (len(c.Command) > 0) == (c.URL != "") {
		add("", "a classifier needs either a command or a url", "write one of them")
	}
	if len(c.Command) > 0 && c.Command[0] == "" {
		add("command", "the program is empty", "write its name or path")
	}
	if u, err := url.Parse(c.URL); c.URL != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		add("url", "this is no address of http or https", "write it like https://host/path")
	}
	if c.Timeout < 0 || c.Timeout > time.Minute {
		add("timeout", "out of bounds", "write a time of up to 1m")
	}
	if !(c.MinConfidence >= 0 && c.MinConfidence <= 1) {
		add("min_confidence", "out of bounds", "write a number from 0 to 1")
	}
	for i, p := range c.Match {
		if err := glob.Check(p); err != nil {
			add(at("match", i, c.Match), err.Error(), "")
		}
	}
	return errors.Join(problems...)
}

// Classifier asks. It is safe for concurrent use.
type Classifier struct {
	config ClassifierConfig
	client *http.Client
}

// NewClassifier returns the classifier of c. Engine.Apply refuses one whose settings have problems.
func NewClassifier(c ClassifierConfig) *Classifier {
	return &Classifier{config: c, client: &http.Client{
		// No connection outlives its question, so that there is nothing to close.
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Name tells classifiers apart in records. It holds neither arguments nor headers.
func (c *Classifier) Name() string {
	if len(c.config.Command) > 0 {
		return "command:" + c.config.Command[0]
	}
	u, err := url.Parse(c.config.URL)
	if err != nil {
		return "http"
	}
	return u.Scheme + ":" + u.Host
}

func (c *Classifier) concerns(r *Request) bool {
	return (len(c.config.Match) == 0 || glob.MatchAny(c.config.Match, string(r.Tool.Name))) &&
		(len(c.config.Tags) == 0 || slices.ContainsFunc(c.config.Tags, r.Facts.Has))
}

// ClassifierRequest describes a call to a classifier.
type ClassifierRequest struct {
	Tool        tool.Name       `json:"tool"`
	Server      string          `json:"server"`
	Description string          `json:"description,omitempty"` // the server's words
	Arguments   json.RawMessage `json:"arguments"`
	Targets     any             `json:"targets,omitempty"`
	Tags        []string        `json:"tags,omitempty"`
	Risk        string          `json:"risk,omitempty"`
	ReadOnly    bool            `json:"read_only"`
	Actor       string          `json:"actor"`
	CWD         string          `json:"cwd,omitempty"`
	Proposed    tool.Behavior   `json:"proposed"` // what happens without the classifier
}

// Opinion is the answer of a classifier, as it is recorded.
type Opinion struct {
	Behavior   tool.Behavior `json:"behavior,omitempty"` // allow, ask or deny
	Confidence *float64      `json:"confidence,omitempty"`
	Reason     string        `json:"reason,omitempty"`

	Classifier string `json:"classifier,omitempty"`
	Failure    string `json:"failure,omitempty"` // why there is no answer
	ElapsedMS  int64  `json:"elapsed_ms"`
}

// deferToClassifier makes the decision wait for the classifier, if that is to be asked about this call.
func (s *compiledPolicy) deferToClassifier(r *Request, v *decision) {
	c := s.settings.Classifier
	if c == nil || v.behavior == tool.Deny || !c.concerns(r) {
		return
	}
	v.behavior, v.pending = tool.Ask, true
}

// Classify is Decide with the classifier's opinion, for requests whose decision has a PendingClassifierCheck. For others it is
// Decide. It takes as long as the classifier's timeout at most.
//
// An opinion tightens the decision of the rules: deny denies, ask asks. Its allow spares a question only where the settings
// permit that, and never one that a rule asks every time. A missing or unreadable answer means ask. A question that the
// classifier wants is asked every time, because no remembered answer is about this very call. The mode then decides about
// calls to be asked about, as always.
func (e *Engine) Classify(ctx context.Context, r Request) tool.PermissionDecision {
	s := e.current.Load()
	v := s.judge(&r)
	c := s.settings.Classifier
	if c == nil || v.behavior == tool.Deny || !c.concerns(&r) {
		return s.record(&r, &v)
	}
	o := c.ask(ctx, s.shown(r), v.behavior)
	v.classifier = &o
	switch {
	case o.Behavior == tool.Deny:
		v.opinion(tool.Deny, "the classifier denies this call", &o)
	case o.Behavior == tool.Allow && (v.behavior != tool.Ask || c.mayAllow(&o) && !v.once && len(v.exact) == 0):
		if v.behavior == tool.Ask {
			v.opinion(tool.Allow, "the classifier allows this call", &o)
		}
	case v.behavior != tool.Ask:
		v.opinion(tool.Ask, "the classifier wants a person to be asked", &o)
		v.mode.apply(&v, &r)
	}
	v.once = v.once || o.Behavior != tool.Allow // it is asked about the next call, too, whatever a person answers now
	return s.record(&r, &v)
}

// shown is r without its secrets.
func (s *compiledPolicy) shown(r Request) *Request {
	if s.settings.Mask == nil {
		return &r
	}
	r.Input = s.settings.Mask(r.Input, r.Facts)
	r.Targets = shownTargets(r.Targets)
	for i := range r.Targets {
		if t := &r.Targets[i]; t.Kind == target.URL {
			t.Given = t.Resolved // what was given may hold a password
		}
	}
	return &r
}

func (v *decision) opinion(then tool.Behavior, message string, o *Opinion) {
	v.behavior, v.source, v.kind, v.message, v.note = then, sourceClassifier, "classifier", message, ""
	if o.Failure != "" {
		v.message = "the classifier did not answer, which means ask"
	}
	if then == tool.Deny && o.Reason != "" {
		v.message = o.Reason
	}
}

func (c *Classifier) mayAllow(o *Opinion) bool {
	sure := c.config.MinConfidence == 0 || o.Confidence != nil && *o.Confidence >= c.config.MinConfidence
	return c.config.MayAllow && sure
}

// maxOpinion bounds what a classifier answers, in bytes.
const maxOpinion = 64 << 10

var errTooMuch = errors.New("the answer is larger than 64 KiB")

// ask returns the opinion about r; one without Behavior and with Failure where there is none.
func (c *Classifier) ask(ctx context.Context, r *Request, proposed tool.Behavior) Opinion {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.config.Timeout, 2*time.Second))
	defer cancel()
	var o Opinion
	question, err := json.Marshal(classifierRequestFor(r, proposed))
	if err == nil {
		var answer []byte
		if answer, err = c.send(ctx, question); err == nil {
			o, err = readOpinion(answer)
		}
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("no answer within %v", time.Since(began).Round(time.Millisecond))
	}
	if err != nil {
		o = Opinion{Failure: oneLine(err.Error())}
	}
	o.Classifier, o.ElapsedMS = c.Name(), time.Since(began).Milliseconds()
	return o
}

func classifierRequestFor(r *Request, proposed tool.Behavior) ClassifierRequest {
	q := ClassifierRequest{Tool: r.Tool.Name, Server: r.Tool.Server, Description: r.Tool.Description, Arguments: r.Input, Tags: r.Facts.Tags,
		Risk: r.Facts.Risk.Value, ReadOnly: r.Facts.ReadOnly.Value, Actor: r.Actor.Ref(), CWD: r.CWD, Proposed: proposed}
	if len(q.Arguments) == 0 {
		q.Arguments = json.RawMessage("{}")
	}
	if len(r.Targets) > 0 {
		q.Targets = r.Targets
	}
	return q
}

// readOpinion accepts what a classifier may say and nothing else.
func readOpinion(answer []byte) (Opinion, error) {
	var said struct {
		Behavior   tool.Behavior `json:"behavior"`
		Confidence *float64      `json:"confidence"`
		Reason     string        `json:"reason"`
	}
	if err := json.Unmarshal(answer, &said); err != nil {
		return Opinion{}, errors.New("the answer is no JSON object of behavior, confidence and reason")
	}
	switch said.Behavior {
	case tool.Allow, tool.Ask, tool.Deny:
	default:
		return Opinion{}, errors.New("the answer's behavior is none of allow, ask and deny")
	}
	if c := said.Confidence; c != nil && !(*c >= 0 && *c <= 1) {
		return Opinion{}, errors.New("the answer's confidence is no number from 0 to 1")
	}
	return Opinion{Behavior: said.Behavior, Confidence: said.Confidence, Reason: oneLine(said.Reason)}, nil
}

func (c *Classifier) send(ctx context.Context, question []byte) ([]byte, error) {
	if len(c.config.Command) > 0 {
		return c.run(ctx, question)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.config.URL, bytes.NewReader(question))
	if err != nil {
		return nil, errors.New("the address cannot be asked")
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range c.config.Headers {
		req.Header.Set(name, value)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		var at *url.Error
		if errors.As(err, &at) {
			err = at.Err // without the address, which may hold a key
		}
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("HTTP status %d", resp.StatusCode)
	}
	return readBounded(resp.Body)
}

func readBounded(from io.Reader) ([]byte, error) {
	answer, err := io.ReadAll(io.LimitReader(from, maxOpinion+1))
	if err == nil && len(answer) > maxOpinion {
		err = errTooMuch
	}
	return answer, err
}

// run starts the command, and ends it with all that it has started when ctx ends.
func (c *Classifier) run(ctx context.Context, question []byte) ([]byte, error) {
	cmd := exec.CommandContext(ctx, c.config.Command[0], c.config.Command[1:]...)
	cmd.Stdin = bytes.NewReader(question)
	cmd.Env = append([]string{}, c.config.Env...)
	cmd.WaitDelay = 200 * time.Millisecond // for what is left of the question: nobody has to read it
	cmd.SysProcAttr = guard.OwnGroup()
	cmd.Cancel = func() error { guard.KillGroup(cmd); return nil }
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer out.Close() // ends the copying
	cmd.Stdout = in
	err = cmd.Start()
	in.Close()
	if err != nil {
		return nil, fmt.Errorf("the command failed: %w", err)
	}
	var answer []byte
	read := make(chan error, 1)
	go func() {
		var err error
		if answer, err = io.ReadAll(io.LimitReader(out, maxOpinion+1)); err == nil {
			_, err = io.Copy(io.Discard, out) // a command that says too much is not held up
		}
		read <- err
	}()
	if err := cmd.Wait(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return nil, fmt.Errorf("the command failed: %w", err)
	}
	select {
	case err := <-read:
		if err != nil {
			return nil, fmt.Errorf("read the answer: %w", err)
		}
	case <-ctx.Done(): // a grandchild holds the pipe
		return nil, ctx.Err()
	}
	if len(answer) > maxOpinion {
		return nil, errTooMuch
	}
	return answer, nil
}
