#!/usr/bin/env bash
# Records docs/recording.svg: sets up a new home directory with three clients, lets one of them find a tool and call
# it, and draws what is printed, line by line. Run it after a change of what these commands print: bash docs/record.sh
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
go build -o "$work/bin/mcp-toolhub" ./cmd/mcp-toolhub
home=$work/ann
mkdir -p "$home/.cursor" "$home/.codex" "$home/.gemini"
export PATH=$work/bin:$PATH HOME=$home XDG_STATE_HOME=$home/.local/state XDG_CONFIG_HOME=$home/.config NO_COLOR=1
trap 'mcp-toolhub stop >/dev/null; rm -rf "$work"' EXIT
demo='{"command": "mcp-toolhub", "args": ["demo-server"]}'
echo "{\"mcpServers\": {\"notes\": $demo}}" >"$home/.cursor/mcp.json"
printf '[mcp_servers.tasks]\ncommand = "mcp-toolhub"\nargs = ["demo-server"]\nenv = {TASKS_KEY = "k"}\n' >"$home/.codex/config.toml"
echo "{\"mcpServers\": {\"notes\": $demo, \"old\": {\"command\": \"old-server\"}}}" >"$home/.gemini/settings.json"

# prints the command and what it prints on a terminal of 80 columns, without diffs of files
run() {
  printf '$ %s\n' "$1"
  script -qec "stty cols 80 2>/dev/null; $1" /dev/null </dev/null |
    sed -e 's/\r*$//' -e 's/^.*\x1b\[K//' -e 's/\x1b\[[0-9;]*[A-Za-z]//g' -e "s#$home#~#g" |
    awk '/^--- / { diff = 1 } diff && !/^[-+@ ]/ { diff = 0 } !diff' | fold -s -w 100
  echo
}
lines=$work/lines
(cd "$home"
  run 'mcp-toolhub setup --yes'
  run 'mcp-toolhub tools search "add two numbers" --limit 3'
  printf '$ mcp-toolhub tools call notes.add --args '"'"'{"a": 1, "b": 2}'"'"'\n'
  mcp-toolhub tools call notes.add --args '{"a": 1, "b": 2}' >"$work/called" 2>&1 &
  until mcp-toolhub approvals list -o json | grep -q apr_; do :; done
  echo
  run 'mcp-toolhub approvals'
  run "mcp-toolhub approvals approve $(mcp-toolhub approvals list -o json | grep -o 'apr_[a-z0-9]*' | head -n 1)"
  wait
  tail -n 1 "$work/called"
  echo
  run 'mcp-toolhub calls') >"$lines"

awk -v total="$(wc -l <"$lines")" '
  function escaped(s) { gsub(/&/, "\\&amp;", s); gsub(/</, "\\&lt;", s); gsub(/>/, "\\&gt;", s); return s }
  BEGIN {
    height = total * 18 + 32
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"900\" height=\"%d\" viewBox=\"0 0 900 %d\" role=\"img\">\n", height, height
    print "<title>mcp-toolhub in a terminal</title>"
    # a text is visible unless its animation has not begun: where nothing animates, all are
    print "<style>text{font:14px monospace;fill:#d4d4d4;white-space:pre;animation:show .1s backwards}.c{fill:#6cc7f2}@keyframes show{from{opacity:0}}</style>"
    print "<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#1e1e1e\"/>"
  }
  {
    command = /^\$ /
    at += command ? 1.2 : 0.08
    if ($0 != "") printf "<text x=\"16\" y=\"%d\"%s style=\"animation-delay:%.2fs\">%s</text>\n", NR * 18 + 12, command ? " class=\"c\"" : "", at, escaped($0)
  }
  END { print "</svg>" }' "$lines" >docs/recording.svg
