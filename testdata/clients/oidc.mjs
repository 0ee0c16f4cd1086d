// An authorization server, oidc-provider, that approves whoever asks. It rotates refresh tokens and ends a sign-in when one is used twice.
// usage: node oidc.mjs RESOURCE LIFETIME; prints {"issuer": URL}, then {"path", "params", "status", "answer"} for each request of a client.
// Tokens for RESOURCE live for LIFETIME seconds. Who serves it asks /token/introspection, as the client "resource" with the secret "secret".
import { createServer } from 'node:http';
import { Provider, errors } from 'oidc-provider';

const [, , resource, lifetime] = process.argv;
const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
const server = createServer();
await new Promise((done) => server.listen(0, '127.0.0.1', done));
const issuer = `http://127.0.0.1:${server.address().port}`;

const provider = new Provider(issuer, {
  clients: [{ client_id: 'resource', client_secret: 'secret', grant_types: [], redirect_uris: [], response_types: [] }],
  cookies: { keys: ['of tests'] },
  scopes: ['openid', 'offline_access', 'read'],
  rotateRefreshToken: true,
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  features: {
    devInteractions: { enabled: false },
    introspection: { enabled: true },
    registration: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_, asked) => {
        if (asked !== resource) throw new errors.InvalidTarget();
        return { scope: 'read', accessTokenTTL: Number(lifetime), accessTokenFormat: 'opaque' };
      },
    },
  },
});

provider.use(async (ctx, next) => {
  await next();
  if (ctx.path === '/token/introspection') return;
  const answer = ctx.method === 'POST' && ctx.body ? ctx.body : undefined;
  say({ path: ctx.path, params: ctx.oidc?.body ?? ctx.oidc?.params, status: ctx.status, answer });
});

// The person signs in and agrees, without a page.
async function interact(req, res) {
  const { prompt, params, session, grantId } = await provider.interactionDetails(req, res);
  if (prompt.name === 'login') {
    return provider.interactionFinished(req, res, { login: { accountId: 'person' } });
  }
  const grant = grantId ? await provider.Grant.find(grantId) : new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  grant.addOIDCScope(params.scope);
  grant.addResourceScope(resource, params.scope);
  return provider.interactionFinished(req, res, { consent: { grantId: await grant.save() } }, { mergeWithLastSubmission: true });
}

const answer = provider.callback();
server.on('request', (req, res) => {
  if (!req.url.startsWith('/interaction/')) return answer(req, res);
  return interact(req, res).catch((err) => { res.statusCode = 500; res.end(String(err)); });
});
say({ issuer });
