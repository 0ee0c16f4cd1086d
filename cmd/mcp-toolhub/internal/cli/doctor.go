package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/clients"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/command"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/declarative"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/internal/run"
	"github.com/mcp-toolhub/mcp-toolhub/internal/splice"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/persist/payload"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/signin"
)

const doctorHelp = `Walk one server of the config through every step until it answers calls, and say which step
fails, why, and what to do. Without SERVER: all servers that are not disabled, the files that
declare tools (those alone are "doctor declarative"), the record store, and the store of large
results. The server is started for the purpose and stopped again. No secret is printed.

With --bundle, doctor starts nothing, and writes a text for a bug report: config, versions, the
states of servers, and the latest log. It has no calls, and [masked] in the place of secrets.`

// doctorCmd runs the command "doctor".
type doctorCmd struct {
	*app
	bundle    string // the file of --bundle; "" for none
	diagnoses []diagnosis
	sick      []string // why each of those that are not OK is not
}

func doctorCommand(a *app) *cobra.Command {
	d := &doctorCmd{app: a, diagnoses: []diagnosis{}}
	cmd := leaf("doctor [SERVER]", "Walk a server through every step and say which one fails", doctorHelp, d.run,
		"mcp-toolhub doctor github --config mcp-toolhub.yaml")
	cmd.ValidArgsFunction = a.complete(nil, serverNames)
	cmd.Args = cobra.MaximumNArgs(1)
	a.outputFlag(cmd.Flags())
	cmd.Flags().StringVar(&d.bundle, "bundle", "", "write a text for a bug report to this new `file`, and start nothing")
	return cmd
}

// diagnosis says how one server, or the files that declare tools, passed the steps.
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

func (d *doctorCmd) run(ctx context.Context, args []string) error {
	if d.bundle != "" {
		return d.writeBundle(ctx, d.bundle)
	}
	s, err := d.load(ctx)
	if err != nil {
		return err
	}
	d.warn(s)
	if err := run.CheckDepth(); err != nil {
		return exitConfig.of(err)
	}
	if len(args) == 0 || args[0] != declarative.Name {
		if err := d.servers(ctx, s.Upstream, hub.OpenSignIns(s), args); err != nil {
			return err
		}
	}
	if len(args) == 0 || args[0] == declarative.Name {
		if err := d.declared(s); err != nil {
			return err
		}
	}
	if len(args) == 0 {
		d.records(ctx, s)
		d.results(ctx, s)
		if err := d.clients(s); err != nil {
			return err
		}
	}
	if d.json() {
		if err := d.printJSON(d.diagnoses); err != nil {
			return err
		}
	} else if err := d.offerEnv(ctx, s.Upstream); err != nil {
		return err
	}
	if len(d.sick) > 0 {
		return exitNotReady.of(errors.New(strings.Join(d.sick, "; ")))
	}
	return nil
}

// servers diagnoses the servers that the command line names, one after the other.
func (d *doctorCmd) servers(ctx context.Context, cfg upstream.Config, signIns *signin.Store,
	args []string) (err error) {
	if cfg.Self, err = os.Executable(); err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	cfg.Version, cfg.SignIns = hub.Version(), signIns
	chosen, err := choose(cfg, args)
	if err != nil {
		return err
	}
	for _, sc := range chosen {
		one := diagnosis{Server: sc.ID, Disabled: sc.Disabled, OK: true}
		note := ""
		if sc.Disabled {
			note = " (disabled in the config: serve leaves it alone)"
		}
		d.title(sc.ID + note)
		err := upstream.Diagnose(ctx, cfg, sc.ID, func(s upstream.Step) { d.step(&one, s) })
		if ctx.Err() != nil {
			return exitInterrupted.errorf("interrupted while server %q was diagnosed", sc.ID)
		}
		if err != nil {
			return err
		}
		if d.diagnoses = append(d.diagnoses, one); !one.OK {
			d.sick = append(d.sick, fmt.Sprintf("server %q fails at the step %s", sc.ID,
				one.Steps[len(one.Steps)-1].Step))
		}
	}
	return nil
}

// offerEnv offers to pass on variables that servers of their kinds use, and that they do not get.
func (d *doctorCmd) offerEnv(ctx context.Context, cfg upstream.Config) error {
	var names []string
	for _, sc := range cfg.Servers {
		if sc.Disabled || !slices.ContainsFunc(d.diagnoses, func(one diagnosis) bool { return one.Server == sc.ID }) {
			continue
		}
		for _, name := range sc.Withheld {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		if len(sc.Withheld) > 0 {
			d.std.say("%s may need %s, which it does not get", sc.ID, strings.Join(sc.Withheld, ", "))
		}
	}
	if len(names) == 0 {
		return nil
	}
	if d.terminal() == nil {
		d.std.say("  what to do: add to hub.env: %s", strings.Join(names, ", "))
		return nil
	}
	ok, err := d.confirm(ctx, "Pass them on to all programs, by hub.env? [y/N]: ")
	if err != nil || !ok {
		return err
	}
	edit := configEdit{app: d.app}
	if err := edit.find(false); err != nil {
		return err
	}
	return edit.change(func(f *splice.File) (*splice.File, error) {
		f, _, err := putEnv(f, names)
		return f, err
	}, nil)
}

// choose returns the servers to diagnose.
func choose(cfg upstream.Config, args []string) ([]upstream.ServerConfig, error) {
	if len(args) == 0 {
		return slices.DeleteFunc(slices.Clone(cfg.Servers), func(s upstream.ServerConfig) bool { return s.Disabled }),
			nil
	}
	at := slices.Index(cfg.IDs(), args[0])
	if at < 0 {
		return nil, noServer(args[0], cfg.IDs())
	}
	return cfg.Servers[at : at+1], nil
}

// noServer is the error about a name that no server of the config has.
func noServer(name string, all []string) error {
	if len(all) == 0 {
		return exitUsage.errorf("there is no server %q: the config names none", name)
	}
	return exitUsage.errorf("there is no server %q: %s", name,
		textfile.DidYouMean(name, all, "use one of "+strings.Join(all, ", ")))
}

// declared diagnoses the files that declare tools: a step for each tool and for each file with faults.
func (d *doctorCmd) declared(s *config.Settings) error {
	if !s.Declarative.Enabled {
		return nil
	}
	c := s.Declarative
	c.Logger = slog.New(slog.DiscardHandler)
	c.Runner, c.Bounds.Environ = command.NewRunner("", c.Logger), os.Environ()
	t, err := declarative.New(c)
	if err != nil {
		return err
	}
	var steps []upstream.Step
	for _, declared := range t.Catalog().Tools {
		steps = append(steps, upstream.Step{Name: "declare", OK: true, Detail: string(declared.Name)})
	}
	for _, p := range t.Problems() {
		steps = append(steps, upstream.Step{Name: "read", Detail: p.File, Hint: "mend the file, then reload the config",
			Lines: p.Faults})
	}
	if len(steps) == 0 {
		return nil
	}
	d.title(declarative.Name)
	one := diagnosis{Server: declarative.Name, OK: true}
	for _, step := range steps {
		d.step(&one, step)
	}
	if d.diagnoses = append(d.diagnoses, one); !one.OK {
		d.sick = append(d.sick, "files of declared tools are left out")
	}
	return nil
}

// records diagnoses the record store, where there is anything to store: it is brought up to date with the journal.
func (d *doctorCmd) records(ctx context.Context, s *config.Settings) {
	if _, err := os.Stat(s.Journal.Dir); err != nil || s.Store == config.StoreOff {
		return
	}
	step := upstream.Step{Name: "fill", Detail: "the record store has all that the journal has",
		Hint: "calls are answered and stand in the journal meanwhile; when that is full, new calls are refused"}
	d.store("records", step, "the record store cannot be written", func() error {
		records, err := hub.OpenRecords(ctx, s)
		if err != nil {
			return err
		}
		return errors.Join(store.FillUp(ctx, records, s.Journal.Dir), records.Close())
	})
}

// results diagnoses the store of large results.
func (d *doctorCmd) results(ctx context.Context, s *config.Settings) {
	step := upstream.Step{Name: "probe", Detail: "results can be stored and read",
		Hint: "mend that; until then callers get large results whole, which their clients may cut or refuse"}
	d.store("results", step, "results cannot be stored and read", func() error { return payload.Probe(ctx, s.Stored) })
}

// clients diagnoses the files of clients that connect has changed, where one starts a program that is gone.
func (d *doctorCmd) clients(s *config.Settings) error {
	record, unlock, err := clients.OpenConnections(s.StateDir, d.clientEnv())
	if err != nil {
		return err
	}
	defer unlock()
	if broken := record.Broken(); len(broken) > 0 {
		step := upstream.Step{Name: "start", Hint: "run mcp-toolhub connect, or disconnect, for the client"}
		d.store("clients", step, "clients start a program that is not there", func() error {
			return errors.New(strings.Join(broken, "; "))
		})
	}
	return nil
}

// store diagnoses a store of the hub in one step. Its detail is for where try succeeds, its hint for where it fails.
func (d *doctorCmd) store(name string, step upstream.Step, sick string, try func() error) {
	d.title(name)
	began := time.Now()
	err := try()
	if step.OK, step.Took = err == nil, time.Since(began); step.OK {
		step.Hint = ""
	} else {
		step.Detail = err.Error()
		d.sick = append(d.sick, sick)
	}
	one := diagnosis{Server: name, OK: true}
	d.step(&one, step)
	d.diagnoses = append(d.diagnoses, one)
}

// How a step is marked.
const (
	stepOK    = "ok"
	stepFails = "FAILS"
)

// title prints what is diagnosed next.
func (d *doctorCmd) title(text string) {
	if !d.json() {
		fmt.Fprintln(d.std.out, text)
	}
}

// step adds a step to the diagnosis, and prints it.
func (d *doctorCmd) step(of *diagnosis, s upstream.Step) {
	of.OK = of.OK && s.OK
	of.Steps = append(of.Steps, diagnosisStep{s.Name, s.OK, hub.Milliseconds(s.Took), s.Detail, s.Hint, s.Lines})
	if d.json() {
		return
	}
	mark := stepOK
	if !s.OK {
		mark = stepFails
	}
	gap := strings.Repeat(" ", len(stepFails)-len(mark))
	if d.std.isColoured(d.std.out) {
		mark = painted(mark)
	}
	took := ""
	if s.Took > 0 {
		took = " (" + s.Took.Round(100*time.Microsecond).String() + ")"
	}
	d.std.say("  %s%s  %-10s  %s%s", mark, gap, s.Name, s.Detail, took)
	indent := strings.Repeat(" ", 21)
	if s.Hint != "" {
		d.std.say("%swhat to do: %s", indent, s.Hint)
	}
	for _, line := range s.Lines {
		d.std.say("%s%s", indent, line)
	}
}
