/**
 * A backend answers a probe of the admin listener without a token, since the kubelet has none. Everyone who reaches
 * the port can use it, so it must not be a way around the gate. The attacker requests other paths with tricks (dot
 * segments, encoded slashes, a query, an absolute form), sends identity headers, a body or an upgrade, hoping that
 * they reach a backend that trusts the sidecar; or uses the probe to get cookies and redirects.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { startEchoBackend, type EchoBackend } from "../support/echo-backend.ts";
import { use } from "../support/pair.ts";
import { startNaiveProxy } from "../support/naive.ts";
import { exchange, type Peer, request } from "../support/raw-client.ts";
import { startSallyport, type Sallyport } from "../support/sallyport.ts";

let backend: EchoBackend;
let gate: Sallyport;
beforeAll(async () => {
  backend = await startEchoBackend();
  const probes = [
    { path: "/healthz", upstream: "app", target: "/health" },
    { path: "/cookies", upstream: "app", target: "/cookies" },
    { path: "/redirect", upstream: "app", target: "/redirect" },
  ];
  gate = await startSallyport({
    withoutToken: true,
    target: backend.url,
    config: { admin: { probes } },
  });
});
afterAll(async () => {
  await gate.close();
  await backend.close();
});

/** Sends a request to the admin port, unless another port is given. */
function probe(line: string, headers: string[] = [], body = "", peer?: Peer) {
  const head = line.startsWith("HEAD");
  const lines = [`${line} HTTP/1.1`, "Host: a", ...headers];
  return exchange(peer ?? { port: gate.adminPort }, request(lines) + body, { head });
}

const FORGED = [
  ...["X-Auth-Subject: root", "X-Forwarded-User: root", "x-remote-user: root"],
  ...["Authorization: Bearer x", "Cookie: a=b", "Forwarded: for=10.0.0.1", "Evil: yes"],
];

it.each([
  "/healthz/",
  "/healthz/..",
  "/healthz/../admin",
  "/healthz%2fadmin",
  "/HEALTHZ",
  "/%68ealthz",
  "//healthz",
  "/./healthz",
  "/health",
  "http://127.0.0.1/admin",
  "http://127.0.0.1/healthz",
])("%s reaches no backend", async (path) => {
  const before = backend.requests.length;
  expect((await probe(`GET ${path}`)).last.status).toBe(404);
  expect(backend.requests.length).toBe(before);
});

it.each(["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])("%s reaches no backend", async (method) => {
  const before = backend.requests.length;
  expect((await probe(`${method} /healthz`)).last.status).toBe(405);
  expect(backend.requests.length).toBe(before);
});

it("nothing from the client is passed on: no query, header, body or upgrade", async () => {
  const before = backend.requests.length;
  const headers = [
    ...FORGED,
    ...["Connection: upgrade", "Upgrade: websocket", "Content-Length: 4"],
  ];
  expect((await probe("GET /healthz?path=/admin", headers, "evil")).last.status).toBe(200);
  const [seen] = backend.requests.slice(before);
  expect([seen?.method, seen?.url, seen?.bodyLength]).toEqual(["GET", "/health", 0]);
  const names = (seen?.rawHeaders ?? []).filter((_, index) => index % 2 === 0);
  expect(names.map((name) => name.toLowerCase()).toSorted()).toEqual([
    "accept",
    "connection",
    "host",
    "user-agent",
  ]);
  expect(JSON.stringify(seen)).not.toMatch(/root|evil/i);
});

it("only status and text of the answer are returned: no cookie, and no redirect", async () => {
  for (const [path, status] of [
    ["/cookies", 200],
    ["/redirect", 302],
  ] as const) {
    const { last } = await probe(`GET ${path}`);
    expect(last.status).toBe(status);
    for (const name of ["set-cookie", "location", "x-echo"]) {
      expect(last.header(name)).toBeUndefined();
    }
    expect(last.header("content-type")).toBe("text/plain; charset=utf-8");
    expect(last.header("x-content-type-options")).toBe("nosniff");
  }
});

it("the probe is not a path of the main listener", async () => {
  expect((await ask(gate, "/healthz")).status).toBe(401);
});

describe("a proxy that lets through everything with the prefix of the probe", () => {
  const standing = use(startEchoBackend, (target) => startNaiveProxy(target));

  it("passes on other paths, the client's headers and body, and the entire answer", async () => {
    const { gate: naive, backend: behind } = standing();
    for (const [asked, told] of [
      ["/public/../admin", "/admin"],
      ["/public%2fadmin", "/public%2fadmin"],
      ["/public?path=/admin", "/public?path=/admin"],
    ] as const) {
      expect((await probe(`GET ${asked}`, [], "", naive)).last.status).toBe(200);
      expect(behind.requests.at(-1)?.url).toBe(told);
    }
    await probe("POST /public", [...FORGED, "Content-Length: 4"], "evil", naive);
    const seen = behind.requests.at(-1);
    expect([seen?.method, seen?.bodyLength]).toEqual(["POST", 4]);
    expect(seen?.rawHeaders).toEqual(
      expect.arrayContaining(["x-forwarded-user", "cookie", "evil"]),
    );
    const { last } = await probe("GET /public/cookies", [], "", naive);
    expect(last.header("set-cookie")).toBe("a=1 | b=2");
    const redirected = await probe("GET /public/redirect", [], "", naive);
    expect(redirected.last.header("location")).toBe("/elsewhere");
  });
});
