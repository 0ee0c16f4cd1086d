// Calls one of the hub's tools with Mastra, as an agent of it would.
// usage: node mastra.mjs HUB_URL; prints {"tools": [NAME], "text": the result as a model is shown it}
import { MCPClient } from '@mastra/mcp';

const client = new MCPClient({ servers: { toolhub: { url: new URL(process.argv[2] + '?names=safe'), connectTimeout: 120_000 } } }); // not 3 s
try {
  const tools = await client.listTools();
  const names = Object.keys(tools);
  const add = tools[names.find((name) => name.endsWith('demo__add'))];
  console.log(JSON.stringify({ tools: names.map((name) => name.replace(/^toolhub_/, '')), text: JSON.stringify(await add.execute({ a: 3, b: 4 }, {})) }));
} finally {
  await client.disconnect();
}
process.exit(0);
