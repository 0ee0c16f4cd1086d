// Has an agent of the OpenAI Agents SDK call one of the hub's tools.
// usage: node agents.mjs HUB_URL openai MODEL_API_URL; prints {"tools": [NAME], "text": what the model says in the end}
import { Agent, MCPServerStreamableHttp, run, setDefaultOpenAIClient, setTracingDisabled } from '@openai/agents';
import OpenAI from 'openai';

const [, , hub, , api] = process.argv;
setTracingDisabled(true);
setDefaultOpenAIClient(new OpenAI({ baseURL: api + '/v1', apiKey: 'none', maxRetries: 0 }));
const server = new MCPServerStreamableHttp({ url: hub + '?names=safe', name: 'toolhub' });
await server.connect();
try {
  const tools = await server.listTools();
  const result = await run(new Agent({ name: 'a', model: 'gpt-5', mcpServers: [server] }), 'go');
  console.log(JSON.stringify({ tools: tools.map((t) => t.name), text: result.finalOutput }));
} finally {
  await server.close();
}
process.exit(0);
