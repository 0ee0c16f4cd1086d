// A client of the Agent Client Protocol: starts an agent and prints what it is told, one JSON object a line, until stdin ends.
// usage: node acp.mjs AGENT STATE allow_once|allow_always|reject_once|reject_always|cancelled; it answers every question so
import { spawn } from 'node:child_process';
import { Readable, Writable } from 'node:stream';
import * as acp from '@agentclientprotocol/sdk';

const [, , agent, state, answer] = process.argv;
const child = spawn('node', [agent, state], { stdio: ['pipe', 'pipe', 'inherit'] });
const connection = acp.client({ name: 'test' })
  .onNotification(acp.methods.client.session.update, (ctx) => console.log(JSON.stringify(ctx.params.update)))
  .onRequest(acp.methods.client.session.requestPermission, (ctx) => {
    console.log(JSON.stringify({ asked: ctx.params }));
    const chosen = ctx.params.options.find((o) => o.kind === answer);
    return { outcome: chosen ? { outcome: 'selected', optionId: chosen.optionId } : { outcome: 'cancelled' } };
  })
  .connect(acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)));
const { methods, PROTOCOL_VERSION } = acp;
await connection.agent.request(methods.agent.initialize, { protocolVersion: PROTOCOL_VERSION, clientCapabilities: {} });
await connection.agent.request(methods.agent.session.new, { cwd: process.cwd(), mcpServers: [] });
process.stdin.on('end', () => { child.kill(); process.exit(0); }).resume();
