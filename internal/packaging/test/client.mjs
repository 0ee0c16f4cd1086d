// An MCP client: lists the tools of a hub and calls one. Usage: node client.mjs SDK URL, or node client.mjs SDK COMMAND ARGS…
import { createRequire } from "node:module";
import { join } from "node:path";

const [dir, target, ...args] = process.argv.slice(2);
const require = createRequire(join(dir, "node_modules", "x"));
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");

const transport = /^http/.test(target)
  ? new StreamableHTTPClientTransport(new URL(target))
  : new StdioClientTransport({ command: target, args, env: process.env, stderr: "inherit" });
const client = new Client({ name: "package-test", version: "1" });
await client.connect(transport);
const { tools } = await client.listTools();
const result = await client.callTool({ name: "mcp.demo.add", arguments: { a: 1, b: 2 } });
console.log(`${client.getServerVersion().version}: ${tools.length} tools; add of 1 and 2 returns ${result.content[0].text}`);
if (JSON.parse(result.content[0].text).sum !== 3) process.exitCode = 1;
await client.close();
