// Lists the hub's tools with LangChain's MCP adapters, gives all of them to a model, and lets that call some.
// usage: node langchain.mjs HUB_URL openai|anthropic MODEL_API_URL; prints {"tools": [NAME], "text": what the model says in the end}
import { ChatAnthropic } from '@langchain/anthropic';
import { HumanMessage } from '@langchain/core/messages';
import { MultiServerMCPClient } from '@langchain/mcp-adapters';
import { ChatOpenAI } from '@langchain/openai';

const [, , hub, vendor, api] = process.argv;
const model = vendor === 'openai'
  ? new ChatOpenAI({ model: 'gpt-5', apiKey: 'none', maxRetries: 0, configuration: { baseURL: api + '/v1' } })
  : new ChatAnthropic({ model: 'claude-opus-4-5', apiKey: 'none', maxRetries: 0, anthropicApiUrl: api });
const client = new MultiServerMCPClient({ mcpServers: { toolhub: { transport: 'http', url: hub } } });
try {
  const tools = await client.getTools();
  const chat = model.bindTools(tools);
  const messages = [new HumanMessage('go')];
  let said = await chat.invoke(messages);
  while (said.tool_calls.length > 0) {
    const [call] = said.tool_calls;
    messages.push(said, await tools.find((t) => t.name === call.name).invoke({ ...call, type: 'tool_call' }));
    said = await chat.invoke(messages);
  }
  console.log(JSON.stringify({ tools: tools.map((t) => t.name), text: said.text }));
} finally {
  await client.close();
}
