#!/usr/bin/env bash
# Records docs/recording.svg: runs the commands below on the example config and draws what they print, line by line.
# Run it after a change of what these commands print: bash docs/record.sh
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/mcp-toolhub" ./cmd/mcp-toolhub
cp config.example.yaml "$work/mcp-toolhub.yaml"
export PATH=$work:$PATH HOME=$work XDG_STATE_HOME=$work/state XDG_CONFIG_HOME=$work/config NO_COLOR=1 MCP_TOOLHUB_CONFIG=$work/mcp-toolhub.yaml

commands=(
  'mcp-toolhub check'
  'mcp-toolhub tools list'
  'mcp-toolhub tools search "add two numbers" --limit 2'
  "mcp-toolhub tools call mcp.demo.add --args '{\"a\": 1, \"b\": 2}'"
  "mcp-toolhub policy explain mcp.demo.grow --args '{}' --door http"
)
lines=$work/lines
(cd "$work" && for command in "${commands[@]}"; do
  printf '$ %s\n' "$command"
  bash -c "$command" 2>&1 | sed "s#$work/##g" | cut -c1-100 | head -n 14 || true
  echo
done) >"$lines"

awk -v total="$(wc -l <"$lines")" '
  function escaped(s) { gsub(/&/, "\\&amp;", s); gsub(/</, "\\&lt;", s); gsub(/>/, "\\&gt;", s); return s }
  BEGIN {
    height = total * 18 + 32
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"900\" height=\"%d\" viewBox=\"0 0 900 %d\" role=\"img\">\n", height, height
    print "<title>mcp-toolhub in a terminal</title>"
    print "<style>text{font:14px monospace;fill:#d4d4d4;white-space:pre;opacity:0;animation:show .1s forwards}.c{fill:#6cc7f2}@keyframes show{to{opacity:1}}</style>"
    print "<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#1e1e1e\"/>"
  }
  {
    command = /^\$ /
    at += command ? 1.2 : 0.08
    if ($0 != "") printf "<text x=\"16\" y=\"%d\"%s style=\"animation-delay:%.2fs\">%s</text>\n", NR * 18 + 12, command ? " class=\"c\"" : "", at, escaped($0)
  }
  END { print "</svg>" }' "$lines" >docs/recording.svg
