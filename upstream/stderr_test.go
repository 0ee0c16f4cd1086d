package upstream_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
)

// TestStatusTellsWhatIsWrong: the status of a server that Node or Python could not run has the line that says why, however much
// stands around it, and so has the diagnosis.
func TestStatusTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ program, file, code, want string }{
		"node, module":    {"node", "a.js", "require('./nope.js')", "Error: Cannot find module './nope.js'"},
		"node, package":   {"node", "a.mjs", "import x from 'no-such-package'", "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'no-such-package'"},
		"node, syntax":    {"node", "a.js", "const x = {;", "SyntaxError: Unexpected token ';'"},
		"node, promise":   {"node", "a.js", "(async () => { throw new TypeError('no API key') })()", "TypeError: no API key"},
		"node, own class": {"node", "a.js", "class AuthError extends Error { name = 'AuthError'; code = 401 }; throw new AuthError('expired')", "AuthError: expired"},
		"node, own words": {"node", "a.js", "console.error('[error] Fatal: cannot reach db'); console.error('shutting down'); process.exit(1)",
			"[error] Fatal: cannot reach db"},
		"python, module": {"python3", "a.py", "import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"},
		"python, chain": {"python3", "a.py", "try:\n  1/0\nexcept Exception as e:\n  raise RuntimeError('no API key') from e",
			"RuntimeError: no API key"},
		"python, syntax": {"python3", "a.py", "def x(:\n  pass", "SyntaxError: "},
		"python, group": {"python3", "a.py", "import asyncio\nasync def bad():\n  raise KeyError('API_KEY')\nasync def main():\n" +
			"  async with asyncio.TaskGroup() as g:\n    g.create_task(bad())\nasyncio.run(main())", "KeyError: 'API_KEY'"},
		"shell": {"sh", "a.sh", "no-such-command-x", "no-such-command-x: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(c.program); err != nil {
				t.Skipf("%s is not installed here", c.program)
			}
			if name == "python, group" && exec.Command(c.program, "-c", "import asyncio; asyncio.TaskGroup").Run() != nil {
				t.Skip("this Python has no exception groups: 3.11 has")
			}
			file := filepath.Join(t.TempDir(), c.file)
			if err := os.WriteFile(file, []byte(c.code+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			cfg := upstream.ServerConfig{ID: "s", Transport: upstream.Stdio, Command: c.program, Args: []string{file}}
			h := start(t, cfg)
			if st := h.reaches(t, "s", tool.ServerBackoff); !strings.Contains(st.LastError, "; its stderr says: ") || !strings.Contains(st.LastError, c.want) {
				t.Errorf("last error %q, want %q in it", st.LastError, c.want)
			}
			if _, text := diagnose(t, cfg); strings.Count(text, c.want) < 2 {
				t.Errorf("the diagnosis does not say %q, once in the detail and once among the lines of stderr:\n%s", c.want, text)
			}
		})
	}
}
