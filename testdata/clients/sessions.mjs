// Calls a tool of the hub, has the hub killed and started again, and calls twice more in the same session.
// usage: node sessions.mjs HUB_URL sdk-1|sdk-2|langchain RESTART_URL TOOL; prints {"answers": [TEXT], "sessions": [ID], "changes": N}
// A POST to RESTART_URL returns when the hub serves again.
const [, , hub, kind, restart, name] = process.argv;
const arguments_ = (n) => ({ a: n, b: 40 });
let changes = 0;

async function sdk(Client, Transport, onToolsChanged) {
  const client = new Client({ name: kind, version: '1' }, { capabilities: { elicitation: {} } });
  const told = new Promise((resolve) => onToolsChanged(client, () => { changes++; resolve(); }));
  // By default an SDK gives up the standing stream after two attempts, within 3 s.
  const reconnectionOptions = { initialReconnectionDelay: 500, maxReconnectionDelay: 500, reconnectionDelayGrowFactor: 1, maxRetries: 300 };
  const transport = new Transport(new URL(hub), { reconnectionOptions });
  await client.connect(transport);
  return {
    call: async (n) => (await client.callTool({ name, arguments: arguments_(n) })).content[0].text,
    session: () => transport.sessionId,
    told: () => told,
    close: () => client.close(),
  };
}

const clients = {
  'sdk-1': async () => {
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
    const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
    const { ToolListChangedNotificationSchema } = await import('@modelcontextprotocol/sdk/types.js');
    return sdk(Client, StreamableHTTPClientTransport, (c, f) => c.setNotificationHandler(ToolListChangedNotificationSchema, f));
  },
  'sdk-2': async () => {
    const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
    return sdk(Client, StreamableHTTPClientTransport, (c, f) => c.setNotificationHandler('notifications/tools/list_changed', f));
  },
  langchain: async () => {
    const { MultiServerMCPClient } = await import('@langchain/mcp-adapters');
    const client = new MultiServerMCPClient({ mcpServers: { toolhub: { transport: 'http', url: hub } } });
    const tool = (await client.getTools()).find((t) => t.name === name);
    return {
      call: async (n) => JSON.stringify(await tool.invoke(arguments_(n))),
      session: () => '', // it does not show
      told: async () => {},
      close: () => client.close(),
    };
  },
};

const client = await clients[kind]();
const answers = [await client.call(1)];
const sessions = [client.session()];
const response = await fetch(restart, { method: 'POST' });
if (!response.ok) throw new Error(await response.text());
answers.push(await client.call(2), await client.call(3));
sessions.push(client.session());
await client.told();
console.log(JSON.stringify({ answers, sessions, changes }));
await client.close();
process.exit(0);
