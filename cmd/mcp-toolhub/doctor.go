package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/declarative"
	"github.com/mcp-toolhub/mcp-toolhub/internal/guard"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
)

const doctorHelp = `Walk one server of the config through every step until it answers calls, and say which step
fails, why, and what to do: is the command there (or does the host of the URL answer), does
it start and initialise, what does it list, what of that can be offered (prompts and resources
too, where it has them), and does it still answer. Each step shows how long it took. Without SERVER, all servers that are not disabled,
one after the other, and the files that declare tools; those alone are "doctor declarative".

The server is started for the purpose and stopped again. No secret of the config is printed.`

func (a *app) doctorCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use: "doctor [SERVER]", Short: "Walk a server through every step and say which one fails", Long: doctorHelp,
		Args:    cobra.MaximumNArgs(1),
		Example: "  mcp-toolhub doctor github --config mcp-toolhub.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFormat(format); err != nil {
				return err
			}
			return a.doctor(cmd.Context(), args, format)
		},
	}
	cmd.ValidArgsFunction = a.complete(nil, serverNames)
	cmd.Flags().StringVarP(&format, "output", "o", "table", "table or json")
	return cmd
}

// diagnosis is the walk of one server.
type diagnosis struct {
	Server   string          `json:"server"`
	Disabled bool            `json:"disabled,omitempty"`
	OK       bool            `json:"ok"`
	Steps    []diagnosisStep `json:"steps"`
}

type diagnosisStep struct {
	Step   string   `json:"step"`
	OK     bool     `json:"ok"`
	TookMS float64  `json:"took_ms"`
	Detail string   `json:"detail"`
	Hint   string   `json:"hint,omitempty"`
	Lines  []string `json:"lines,omitempty"`
}

func (a *app) doctor(ctx context.Context, args []string, format string) error {
	s, err := a.load(ctx)
	if err != nil {
		return err
	}
	a.warn(s)
	if err := guard.CheckDepth(); err != nil {
		return &exitError{exitConfig, err}
	}
	cfg := s.Upstream
	if cfg.Self, err = os.Executable(); err != nil {
		return failed(fmt.Errorf("find this program: %w", err))
	}
	cfg.Version = version()
	all, sick := []diagnosis{}, []string{}
	var chosen []string
	if onlyDeclared := len(args) > 0 && args[0] == declarative.Name; !onlyDeclared {
		if chosen, err = choose(cfg, args); err != nil {
			return err
		}
	}
	for _, id := range chosen {
		d, err := a.diagnose(ctx, cfg, id, format == "table")
		if ctx.Err() != nil {
			return &exitError{exitInterrupted, fmt.Errorf("interrupted while server %q was diagnosed", id)}
		}
		if err != nil {
			return failed(err)
		}
		if all = append(all, d); !d.OK {
			sick = append(sick, fmt.Sprintf("server %q fails at the step %s", id, d.Steps[len(d.Steps)-1].Step))
		}
	}
	if len(args) == 0 || args[0] == declarative.Name {
		d, any, err := a.diagnoseDeclared(s, format == "table")
		if err != nil {
			return failed(err)
		}
		if any {
			all = append(all, d)
		}
		if !d.OK {
			sick = append(sick, "files of declared tools are left out")
		}
	}
	if format == "json" {
		enc := json.NewEncoder(a.std.out)
		enc.SetIndent("", "  ")
		if err := enc.Encode(all); err != nil {
			return failed(err)
		}
	}
	if len(sick) > 0 {
		return &exitError{exitNotReady, errors.New(strings.Join(sick, "; "))}
	}
	return nil
}

// choose returns the ids of the servers to diagnose.
func choose(cfg upstream.Config, args []string) ([]string, error) {
	var all, enabled []string
	for _, s := range cfg.Servers {
		all = append(all, s.ID)
		if len(args) > 0 && s.ID == args[0] {
			return args[:1], nil
		}
		if !s.Disabled {
			enabled = append(enabled, s.ID)
		}
	}
	switch {
	case len(args) == 0:
		return enabled, nil
	case len(all) == 0:
		return nil, &exitError{exitUsage, fmt.Errorf("there is no server %q: the config names none", args[0])}
	}
	return nil, &exitError{exitUsage, fmt.Errorf("there is no server %q: %s", args[0],
		textfile.DidYouMean(args[0], all, "use one of "+strings.Join(all, ", ")))}
}

// diagnose walks one server, and prints each step as soon as it is known where print says so.
func (a *app) diagnose(ctx context.Context, cfg upstream.Config, id string, print bool) (diagnosis, error) {
	d := diagnosis{Server: id, OK: true}
	d.Disabled = slices.ContainsFunc(cfg.Servers, func(s upstream.ServerConfig) bool { return s.ID == id && s.Disabled })
	if print {
		note := ""
		if d.Disabled {
			note = " (disabled in the config: serve leaves it alone)"
		}
		fmt.Fprintln(a.std.out, id+note)
	}
	err := upstream.Diagnose(ctx, cfg, id, func(s upstream.Step) {
		d.OK = d.OK && s.OK
		d.Steps = append(d.Steps, diagnosisStep{Step: s.Name, OK: s.OK, TookMS: milliseconds(s.Took), Detail: s.Detail,
			Hint: s.Hint, Lines: s.Lines})
		if print {
			a.printStep(s)
		}
	})
	return d, err
}

// How a step is marked.
const (
	stepOK    = "ok"
	stepFails = "FAILS"
)

func (a *app) printStep(s upstream.Step) {
	mark := stepOK
	if !s.OK {
		mark = stepFails
	}
	gap := strings.Repeat(" ", len(stepFails)-len(mark))
	if a.std.isColoured(a.std.out) {
		mark = painted(mark)
	}
	took := ""
	if s.Took > 0 {
		took = " (" + s.Took.Round(100*time.Microsecond).String() + ")"
	}
	fmt.Fprintf(a.std.out, "  %s%s  %-10s  %s%s\n", mark, gap, s.Name, s.Detail, took)
	indent := strings.Repeat(" ", 21)
	if s.Hint != "" {
		fmt.Fprintf(a.std.out, "%swhat to do: %s\n", indent, s.Hint)
	}
	for _, line := range s.Lines {
		fmt.Fprintf(a.std.out, "%s%s\n", indent, line)
	}
}
