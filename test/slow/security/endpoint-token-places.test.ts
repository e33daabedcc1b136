/**
 * Tokens of callers of `/api/logout` and `/api/version`. An application whose token is in an HttpOnly cookie has no other
 * way to end it, so these endpoints take tokens from all places that some route names. They are as strict about them as
 * routes: another site's page must not log a user out, and a request with two tokens is nobody's.
 */
import { expect, it } from "vitest";
import { ask } from "../../support/ask.ts";
import { connectHttp2 } from "../../support/http2-client.ts";
import { logLine } from "../../support/log-line.ts";
import { ALICE, type Sallyport, startSallyport } from "../../support/sallyport.ts";
import { openWebSocket, startWebSocketBackend } from "../../support/websocket.ts";

const TARGET = "http://127.0.0.1:9";
const places = [{ cookie: "tok" }, { header: "X-Token" }, { query: "access_token" }];
const tokens = { revocation: { logout: true } };
const config = {
  server: { http2: true },
  tokens,
  routes: [
    { name: "app", path: "/app", upstream: "app", tokenFrom: places },
    { name: "rest", path: "/", upstream: "app" },
  ],
};
const VERSIONS = ["/api/version", "/api/v1/version"];
const SAME = { "sec-fetch-site": "same-origin" };

type Sent = { readonly path?: string; readonly headers?: Record<string, string> };
const ONE: readonly (readonly [string, (token: string) => Sent])[] = [
  ["Authorization", (token) => ({ headers: { authorization: `Bearer ${token}` } })],
  ["a cookie", (token) => ({ headers: { ...SAME, cookie: `a=1; tok=${token}` } })],
  ["a header", (token) => ({ headers: { "x-token": token } })],
  ["a query", (token) => ({ path: `?access_token=${token}` })],
];

const login = (gate: Sallyport): Promise<string> => gate.login(ALICE.username, ALICE.password);
const versionWith = async (gate: Sallyport, token: string): Promise<number> =>
  (await ask(gate, "/api/version", { token })).status;

it("a token in each place reaches the version, and is logged out", async () => {
  await using gate = await startSallyport({ target: TARGET, withoutToken: true, config });
  for (const [place, sent] of ONE) {
    const token = await login(gate);
    const { path = "", headers = {} } = sent(token);
    for (const version of VERSIONS) {
      const { status } = await ask(gate, `${version}${path}`, { headers });
      expect([place, status]).toEqual([place, 200]);
    }
    const logout = () => ask(gate, `/api/logout${path}`, { method: "POST", headers });
    expect([place, (await logout()).status]).toEqual([place, 200]);
    expect([place, await versionWith(gate, token)]).toEqual([place, 401]);
    // As for a token in Authorization.
    expect([place, (await logout()).status]).toEqual([place, 200]);
  }
  expect(gate.leaks()).toEqual([]);
});

it("over HTTP/2, too", async () => {
  await using gate = await startSallyport({ target: TARGET, withoutToken: true, config });
  const token = await login(gate);
  await using client = await connectHttp2(gate);
  const fields = { ":method": "POST", ":path": "/api/logout", cookie: `tok=${token}` };
  expect((await client.ask({ ...fields, "sec-fetch-site": "cross-site" })).status).toBe(403);
  expect(await versionWith(gate, token)).toBe(200);
  expect((await client.ask({ ...fields, ...SAME })).status).toBe(200);
  expect(await versionWith(gate, token)).toBe(401);
});

it("no other site's page logs a user out, and no request with two tokens counts", async () => {
  await using gate = await startSallyport({ target: TARGET, withoutToken: true, config });
  const [token, other] = [await login(gate), await login(gate)];
  const cookie = `tok=${token}`;
  const logout = async (headers: Record<string, string>, path = "", method = "POST") =>
    (await ask(gate, `/api/logout${path}`, { method, headers })).status;
  expect(await logout({ cookie })).toBe(403);
  expect(await logout({ cookie }, "", "DELETE")).toBe(403);
  expect(await logout({ cookie, "sec-fetch-site": "same-site" })).toBe(403);
  expect(await logout({ cookie, origin: "https://evil.example" })).toBe(403);
  await logLine(gate, { path: "/api/logout", status: 403, reason: "cross_site" });
  expect(await logout({ ...SAME, cookie, authorization: `Bearer ${other}` })).toBe(401);
  expect(await logout({ ...SAME, cookie, "x-token": other })).toBe(401);
  expect(await logout({ ...SAME, cookie: `${cookie}; tok=${other}` })).toBe(401);
  expect(await logout({ "x-token": token }, `?access_token=${other}`)).toBe(401);
  await logLine(gate, { path: "/api/logout", status: 401, reason: "multiple" });
  expect(await logout({ ...SAME, cookie: "tok=forged" })).toBe(401);
  expect(await versionWith(gate, token)).toBe(200);
  expect(await versionWith(gate, other)).toBe(200);
  // A safe method needs no proof of the origin.
  expect((await ask(gate, "/api/version", { headers: { cookie } })).status).toBe(200);
});

it("a place that no route names is none", async () => {
  const routes = [{ ...config.routes[0], tokenFrom: [{ cookie: "tok" }] }, config.routes[1]];
  await using gate = await startSallyport({ target: TARGET, config: { ...config, routes } });
  const { token } = gate;
  for (const sent of [
    { headers: { "x-token": token } },
    { headers: { ...SAME, cookie: `other=${token}` } },
  ]) {
    expect((await ask(gate, "/api/version", sent)).status).toBe(401);
  }
  expect((await ask(gate, `/api/version?access_token=${token}`)).status).toBe(401);
  expect(await versionWith(gate, token)).toBe(200);
});

it("without tokenFrom, a cookie beside Authorization is nobody's business", async () => {
  await using gate = await startSallyport({ target: TARGET, config: { tokens } });
  const headers = { cookie: "tok=x", "x-token": "y" };
  const { token } = gate;
  expect((await ask(gate, "/api/version?access_token=z", { token, headers })).status).toBe(200);
});

it("a browser's logout ends what its cookie has opened", async () => {
  await using backend = await startWebSocketBackend();
  await using gate = await startSallyport({ target: backend.url, config });
  const headers = { ...SAME, cookie: `tok=${gate.token}` };
  using socket = await openWebSocket(gate, "/app/ws", headers);
  expect((await ask(gate, "/api/logout", { method: "POST", headers })).status).toBe(200);
  expect(await socket.closed).toBe(1008);
});

it("explain names the place", async () => {
  await using gate = await startSallyport({ target: TARGET, config });
  const url = encodeURIComponent(`/api/version?access_token=${gate.token}`);
  const { body } = await ask({ port: gate.adminPort }, `/-/explain?url=${url}`);
  expect(JSON.parse(body).token).toMatchObject({
    accepted: true,
    place: "the query field access_token",
  });
});
