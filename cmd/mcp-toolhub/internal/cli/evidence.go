package cli

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/persist/evidence"
)

const verifyHelp = `Check an evidence bundle that calls export --format evidence has made. No hub and no state
directory is needed.

Every record that was altered, removed, moved or added since it was signed is named. Whoever
made the bundle can sign anything: so ask on another way for what mcp-toolhub evidence key
prints there, and give it as --key.

Exit code 0 where all is as it was signed, 1 otherwise.`

func evidenceCommand(a *app) *cobra.Command {
	var key string
	verify := leaf("verify FILE", "Check an evidence bundle", verifyHelp,
		func(_ context.Context, file string) error { return a.verifyEvidence(file, key) })
	verify.Flags().StringVar(&key, "key", "", "the `key` that must have signed the bundle")
	a.outputFlag(verify.Flags())
	show := leaf("key", "Print the public key that signs for this state directory", "", func(context.Context) error {
		state, err := a.findState()
		if err != nil {
			return err
		}
		private, err := hub.NewKeeper(state, filepath.Join(state, "journal")).Key()
		if err != nil {
			return err
		}
		return a.std.print([]byte(base64.StdEncoding.EncodeToString(private.Public().(ed25519.PublicKey))))
	})
	return group("evidence", "Check what calls export --format evidence has written", "", verify, show)
}

func (a *app) verifyEvidence(path, key string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	report, err := evidence.Verify(file)
	if err != nil {
		return fmt.Errorf("verify %q: %w", path, err)
	}
	signer := base64.StdEncoding.EncodeToString(report.Key)
	if key != "" && key != signer {
		report.Findings = append(report.Findings, evidence.Finding{What: "key",
			Detail: "the bundle is signed by another key than --key"})
	}
	if a.json() {
		err = a.printJSON(report)
	} else {
		err = a.std.print([]byte(reportText(report, signer)))
	}
	if err != nil {
		return err
	}
	if n := len(report.Findings) + report.More; n > 0 {
		return fmt.Errorf("the bundle is not as it was signed: %s", textfile.Count(n, "finding"))
	}
	return nil
}

func reportText(r *evidence.Report, signer string) string {
	t := newTable("FOUND", "LINE", "FILE", "RECORD", "DETAIL")
	for _, f := range r.Findings {
		line := ""
		if f.Line > 0 {
			line = fmt.Sprint(f.Line)
		}
		t.add(f.What, line, printable(f.File), printable(f.Record), printable(f.Detail))
	}
	text := ""
	if len(r.Findings) > 0 {
		text = t.text(1<<20, false)
	}
	text += fmt.Sprintf("%s of %s are as they were signed", textfile.Count(r.Records, "record"),
		textfile.Count(int(r.Lines), "line"))
	if r.Erased > 0 {
		text += fmt.Sprintf("; values were left out of %d", r.Erased)
	}
	text += fmt.Sprintf("\nmade %s by %s\nkey %s\n", r.MadeAt.Format(time.RFC3339), printable(r.Hub), signer)
	if r.Query != "" {
		text += "selected by " + printable(r.Query) + "\n"
	}
	return text
}
