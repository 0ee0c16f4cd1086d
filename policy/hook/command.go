package hook

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Runner runs programs.
type Runner interface {
	// Run runs a program and returns when nothing of it is left, which is soon after ctx is done.
	// An error means that it did not run, or was ended by somebody else than itself.
	Run(ctx context.Context, c Command) (Ended, error)
}

// Command is a program that a hook runs.
type Command struct {
	Argv     []string
	Dir      string
	Env      []string // names of variables of the hub's
	Set      []string // NAME=value
	Stdin    []byte
	Timeout  time.Duration
	MaxBytes int // of stdout, and of stderr
}

// Ended is how a program ended by itself.
type Ended struct {
	ExitCode int
	Stdout   []byte
	Stderr   string
	Cut      bool // stdout was longer than MaxBytes
}

// command is a hook that is a program: JSON on stdin, JSON on stdout. Exit code 2 blocks with stderr as the reason.
type command struct {
	argv   []string
	env    []string
	dir    string
	runner Runner
}

func (*command) leavesTheHub() {}

// Run runs the program in a process of its own.
func (c *command) Run(ctx context.Context, in *Input) (o Output, err error) {
	stdin, err := in.JSON()
	if err != nil {
		return o, err
	}
	if c.runner == nil {
		return o, errors.New("this hub runs no commands")
	}
	end, err := c.runner.Run(ctx, Command{Argv: c.argv, Dir: c.dir, Env: c.env,
		Set:   []string{"CLAUDE_PROJECT_DIR=" + c.dir, Variable + "=" + in.mark()},
		Stdin: append(stdin, '\n'), Timeout: MaxTimeout, MaxBytes: maxOutput})
	switch {
	case err != nil:
		return o, err
	case end.ExitCode == 2:
		block(in.Event, &o, cmp.Or(clip(strings.TrimSpace(end.Stderr)), "the hook says so"))
		return o, nil
	case end.ExitCode != 0:
		return o, fmt.Errorf("the hook ended with exit code %d: %s", end.ExitCode,
			cmp.Or(clip(strings.TrimSpace(end.Stderr)), "it said nothing"))
	case end.Cut:
		return o, fmt.Errorf("the hook wrote more than %d bytes", maxOutput)
	}
	return parse(in.Event, end.Stdout)
}

// endpoint is a hook behind HTTP: the call is posted, the answer is the output.
type endpoint struct {
	url     string
	headers map[string]string
}

// client follows no redirect.
var client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
	return http.ErrUseLastResponse
}}

func (*endpoint) leavesTheHub() {}

// Run posts the call. Each status but 2xx is a failure of the hook.
func (e *endpoint) Run(ctx context.Context, in *Input) (o Output, err error) {
	body, err := in.JSON()
	if err != nil {
		return o, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return o, errors.New("make the request: the address is none")
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range e.headers {
		req.Header.Set(name, value)
	}
	resp, err := client.Do(req)
	if err != nil {
		var at interface{ Unwrap() error }
		if errors.As(err, &at) && at.Unwrap() != nil { // without the address, which may hold a secret
			err = at.Unwrap()
		}
		return o, fmt.Errorf("reach the hook: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxOutput+1))
	switch {
	case err != nil:
		return o, fmt.Errorf("read the hook's answer: %w", err)
	case len(text) > maxOutput:
		return o, fmt.Errorf("the hook answered with more than %d bytes", maxOutput)
	case resp.StatusCode/100 != 2:
		return o, fmt.Errorf("the hook answered with status %d", resp.StatusCode)
	}
	return parse(in.Event, text)
}
