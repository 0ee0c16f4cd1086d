package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
)

// terminal asks the person who sits at it.
type terminal struct {
	std   streams
	start sync.Once
	lines chan string // what is typed; closed at the end of the input
	mu    sync.Mutex  // one question at a time
}

// asker puts the hub's questions to the person at the terminal; nil where nobody sits there.
func (a *app) asker() tool.Asker {
	if !isTerminal(a.std.in) || !isTerminal(a.std.err) {
		return nil
	}
	t := &terminal{std: a.std, lines: make(chan string)}
	return t.ask
}

// errNotAsked is the answer to what servers ask.
func errNotAsked() *tool.RPCError {
	return &tool.RPCError{Code: tool.CodeMethodNotFound, Message: "the command line answers no questions of servers"}
}

func (t *terminal) ask(ctx context.Context, questions []tool.Question) ([]tool.Answer, error) {
	answers := make([]tool.Answer, len(questions))
	for i, q := range questions {
		if !q.Own || q.Method != tool.MethodElicit {
			answers[i].Err = errNotAsked()
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

// option is an answer that can be typed.
type option struct {
	key, title string
	choice     policy.Choice
}

func options() []option {
	return []option{{"y", "allow once", policy.AllowOnce}, {"s", "allow for this session, which is this command", policy.AllowSession},
		{"a", "always allow in this scope", policy.AllowAlways}, {"n", "deny once", policy.DenyOnce},
		{"d", "always deny in this scope", policy.DenyAlways}}
}

// put puts one question and returns the answer as the result of an elicitation. Whoever ends the input has declined.
func (t *terminal) put(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var question struct {
		Message         string `json:"message"`
		RequestedSchema struct {
			Properties struct {
				Answer struct {
					Enum []policy.Choice `json:"enum"`
				} `json:"answer"`
			} `json:"properties"`
		} `json:"requestedSchema"`
	}
	if err := json.Unmarshal(params, &question); err != nil {
		return nil, fmt.Errorf("read the question: %w", err)
	}
	fmt.Fprintf(t.std.err, "\n%s\n\n", printable(question.Message))
	offered := make(map[string]policy.Choice)
	var keys []string
	for _, o := range options() {
		for _, c := range question.RequestedSchema.Properties.Answer.Enum {
			if c == o.choice {
				offered[o.key] = c
				keys = append(keys, o.key)
				fmt.Fprintf(t.std.err, "  %s  %s\n", o.key, o.title)
			}
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
			return json.RawMessage(`{"action":"decline"}`), nil
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
		return json.Marshal(map[string]any{"action": "accept", "content": map[string]string{"answer": string(choice), "message": says}})
	}
}

// line is the next line that is typed. An error means that ctx is done: the question is settled, or the call has ended.
func (t *terminal) line(ctx context.Context) (text string, ok bool, err error) {
	t.start.Do(func() {
		go func() { // nothing ends a read from a terminal but the end of the process
			defer close(t.lines)
			for s := bufio.NewScanner(t.std.in); s.Scan(); {
				t.lines <- strings.TrimSpace(s.Text())
			}
		}()
	})
	select {
	case text, ok = <-t.lines:
		return text, ok, nil
	case <-ctx.Done():
		fmt.Fprintln(t.std.err)
		return "", false, errors.New("ask at the terminal: the question is settled, or the call has ended")
	}
}

// waiting begins the message of the progress that says that a call waits for a person; see package invoke.
const waiting = "waiting_for_permission: "

// tellWaiting prints, once, what a person can do about a call that waits.
func (a *app) tellWaiting() func(tool.Progress) {
	var once sync.Once
	return func(p tool.Progress) {
		var report struct{ Message string }
		if json.Unmarshal(p.Params, &report) != nil || !strings.HasPrefix(report.Message, waiting) {
			return
		}
		words := strings.Fields(report.Message)
		id := printable(words[len(words)-1])
		if !strings.HasPrefix(id, approvalPrefix) {
			return
		}
		once.Do(func() {
			fmt.Fprintf(a.std.err, "The call waits until a person allows it. In another terminal: mcp-toolhub approvals show %s, then\n"+
				"mcp-toolhub approvals approve %s, or deny %s.\n", id, id, id)
		})
	}
}

// approvalPrefix begins the ids of questions.
const approvalPrefix = "apr_"
