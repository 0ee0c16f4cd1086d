// Lists the hub's tools with the AI SDK, gives all of them to a model, and lets that call some.
// usage: node ai-sdk.mjs HUB_URL openai|anthropic MODEL_API_URL; prints {"tools": [NAME], "text": what the model says in the end}
import { createAnthropic } from '@ai-sdk/anthropic';
import { createMCPClient } from '@ai-sdk/mcp';
import { createOpenAI } from '@ai-sdk/openai';
import { generateText, stepCountIs } from 'ai';

const [, , hub, vendor, api] = process.argv;
const settings = { baseURL: api + '/v1', apiKey: 'none' };
const model = vendor === 'openai' ? createOpenAI(settings)('gpt-5') : createAnthropic(settings)('claude-opus-4-5');
const client = await createMCPClient({ transport: { type: 'http', url: hub } });
try {
  const tools = await client.tools();
  const { text } = await generateText({ model, tools, prompt: 'go', stopWhen: stepCountIs(3), maxRetries: 0 });
  console.log(JSON.stringify({ tools: Object.keys(tools), text }));
} finally {
  await client.close();
}
