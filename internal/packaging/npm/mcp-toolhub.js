#!/usr/bin/env node
// Runs the program of mcp-toolhub that npm has installed for this system.
"use strict";
const { spawn } = require("node:child_process");

const name = `@mcp-toolhub/${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/bin/mcp-toolhub${process.platform === "win32" ? ".exe" : ""}`);
} catch {
  console.error(`mcp-toolhub: the package ${name} is not installed. Install mcp-toolhub again, without --omit=optional; for a
system that has no such package, build it: https://github.com/mcp-toolhub/mcp-toolhub`);
  process.exit(1);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
child.on("error", (err) => {
  console.error(`mcp-toolhub: ${err.message}`);
  process.exit(1);
});
// A terminal sends Ctrl-C to both processes. The hub must not get it twice: the second signal kills it.
const terminal = process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY;
for (const signal of ["SIGINT", "SIGHUP", "SIGTERM"]) {
  process.on(signal, () => {
    if (!terminal || signal === "SIGTERM") child.kill(signal);
  });
}
child.on("exit", (code, signal) => {
  if (!signal) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
