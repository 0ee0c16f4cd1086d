package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
)

// terminal asks the person who sits at it.
type terminal struct {
	std streams
	mu  sync.Mutex // one question at a time
	// gets the next line that is typed, and is closed at the end of the input; nil while nobody
	// reads
	reading chan string
}

// terminal returns the terminal that a person sits at; nil where nobody does.
func (a *app) terminal() *terminal {
	if !isTerminal(a.std.in) || !isTerminal(a.std.err) {
		return nil
	}
	a.terminalOnce.Do(func() { a.shared = &terminal{std: a.std} })
	return a.shared
}

// asker returns the way to ask the person at the terminal; nil where nobody sits there.
func (a *app) asker() tool.Asker {
	if t := a.terminal(); t != nil {
		return t.ask
	}
	return nil
}

func (t *terminal) ask(ctx context.Context, questions []tool.Question) ([]tool.Answer, error) {
	answers := make([]tool.Answer, len(questions))
	for i, q := range questions {
		if q.Method != tool.MethodElicit {
			answers[i].Err = &tool.RPCError{Code: tool.CodeMethodNotFound,
				Message: "the command line answers no questions of servers"}
			continue
		}
		result, err := t.put(ctx, q.Params)
		if err != nil {
			return nil, err
		}
		answers[i].Result = result
	}
	return answers, nil
}

// option is an answer that a person can type.
type option struct {
	key, title string
	choice     policy.Choice
}

func options() []option {
	return []option{{"y", "allow once", policy.AllowOnce}, {"s", "allow for this session", policy.AllowSession},
		{"a", "always allow in this scope", policy.AllowAlways}, {"n", "deny once", policy.DenyOnce},
		{"d", "always deny in this scope", policy.DenyAlways}, {"o", "", policy.AllowOffered},
		{"o", "", policy.DenyOffered}}
}

// put asks one question, and returns the answer as the result of an elicitation. The end of the
// input denies by an answer: a refusal that comes at once would count as one of a program.
func (t *terminal) put(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	message, choices, titles := readQuestion(params)
	if len(choices) == 0 {
		t.std.note("\nA server asks something that the command line cannot answer; it is declined: %s",
			hidden.Summary(message, 200))
		return json.RawMessage(declinedForm), nil
	}
	t.std.note("\n%s\n", printable(message))
	offered := make(map[string]policy.Choice)
	var keys []string
	for _, o := range options() {
		if slices.Contains(choices, o.choice) {
			offered[o.key] = o.choice
			keys = append(keys, o.key)
			t.std.note("  %s  %s", o.key, printable(cmp.Or(o.title, titles[o.choice])))
		}
	}
	for {
		fmt.Fprintf(t.std.err, "Answer [%s]: ", strings.Join(keys, "/"))
		line, ok, err := t.line(ctx)
		if err != nil {
			return nil, err
		}
		if !ok {
			fmt.Fprintln(t.std.err)
			return answerForm(policy.DenyOnce, "")
		}
		choice, known := offered[strings.ToLower(line)]
		if !known {
			continue
		}
		fmt.Fprint(t.std.err, "A sentence to the model (Enter for none): ")
		says, _, err := t.line(ctx)
		if err != nil {
			return nil, err
		}
		return answerForm(choice, says)
	}
}

// answerForm fills in a form of gate.Form, with a sentence to the model.
func answerForm(choice policy.Choice, says string) (json.RawMessage, error) {
	return json.Marshal(map[string]any{"action": "accept", "content": map[string]string{"answer": string(choice),
		"message": says}})
}

const declinedForm = `{"action":"decline"}`

// readQuestion reads a hub's question about a call, as gate.Form writes it. Any other has no choices.
func readQuestion(params json.RawMessage) (message string, choices []policy.Choice, titles map[policy.Choice]string) {
	var question struct {
		Message         string
		RequestedSchema struct {
			Properties struct {
				Answer struct {
					Enum      []policy.Choice
					EnumNames []string
					OneOf     []struct {
						Const policy.Choice
						Title string
					}
				}
			}
		}
	}
	if json.Unmarshal(params, &question) != nil {
		return "", nil, nil
	}
	answer := question.RequestedSchema.Properties.Answer
	titles = make(map[policy.Choice]string)
	for i, c := range answer.Enum {
		if choices = append(choices, c); i < len(answer.EnumNames) {
			titles[c] = answer.EnumNames[i]
		}
	}
	for _, o := range answer.OneOf {
		choices = append(choices, o.Const)
		titles[o.Const] = o.Title
	}
	if !slices.ContainsFunc(choices, policy.Choice.IsValid) {
		return question.Message, nil, nil
	}
	return question.Message, choices, titles
}

// line returns the next line that is typed. An error means that ctx is done: the question is
// settled, or the call has ended. Later lines stay in the input, for a client's protocol for
// instance.
func (t *terminal) line(ctx context.Context) (text string, ok bool, err error) {
	if t.reading == nil {
		t.reading = make(chan string, 1)
		go readLine(t.std.in, t.reading) // nothing ends a read from a terminal but the end of the process
	}
	select {
	case text, ok = <-t.reading:
		t.reading = nil
		return text, ok, nil
	case <-ctx.Done():
		fmt.Fprintln(t.std.err)
		return "", false, errors.New("ask at the terminal: the question is settled, or the call has ended")
	}
}

// yes asks a question that is answered with yes or no. Enter alone means the one that the question
// writes in upper case. t.mu is held.
func (t *terminal) yes(ctx context.Context, question string) (bool, error) {
	for {
		fmt.Fprint(t.std.err, question)
		answer, ok, err := t.line(ctx)
		switch answer = strings.ToLower(answer); {
		case err != nil:
			return false, exitInterrupted.errorf("interrupted")
		case !ok || answer == "n" || answer == "no":
			return false, nil
		case answer == "y" || answer == "yes":
			return true, nil
		case answer == "":
			return strings.Contains(question, "[Y/n]"), nil
		}
	}
}

// readLine sends one line of in. It reads byte by byte, and nothing beyond the line.
func readLine(in io.Reader, line chan<- string) {
	defer close(line)
	var text []byte
	for one := make([]byte, 1); ; {
		n, err := in.Read(one)
		if n > 0 && one[0] != '\n' {
			text = append(text, one[0])
			continue
		}
		if n > 0 || len(text) > 0 {
			line <- strings.TrimSpace(string(text))
		}
		if n > 0 || err != nil {
			return
		}
	}
}

// waiting begins the progress message of a call that waits for a person; see package invoke.
const waiting = "waiting_for_permission: "

// sayWaiting prints, once, what a person can do about a call that waits.
func (a *app) sayWaiting() func(tool.Progress) {
	var once sync.Once
	return func(p tool.Progress) {
		var report struct{ Message string }
		if json.Unmarshal(p.Params, &report) != nil || !strings.HasPrefix(report.Message, waiting) {
			return
		}
		words := strings.Fields(report.Message)
		at := slices.IndexFunc(words, approvalID.MatchString)
		if at < 0 {
			return
		}
		id := words[at] // nothing else of it: a server can say what it likes
		once.Do(func() {
			state, _ := a.findState() // the hub has found it, too
			a.std.note("The call waits until a person allows it. In another terminal, one of:")
			for _, verb := range []string{"show", "approve", "deny"} {
				fmt.Fprintln(a.std.err, "  "+hub.CommandLine(state, "approvals "+verb+" "+id))
			}
		})
	}
}

// approvalID matches the id of a question.
var approvalID = regexp.MustCompile(`^apr_[a-z0-9]+$`)
