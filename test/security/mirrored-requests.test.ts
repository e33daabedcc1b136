/**
 * Abuse of mirrors by clients: the copy must carry no token, only the verified identity, and exactly one request; and
 * copies must not exhaust memory.
 */
import { expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { valuesOf } from "../support/http-reader.ts";
import { startRawBackend } from "../support/raw-backend.ts";
import { exchange, request } from "../support/raw-client.ts";
import { startSallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";
import { until } from "../support/until.ts";

async function start(server: object = {}, hangs = false) {
  const shadow = await startRawBackend(hangs ? () => "hang" : undefined);
  const real = await startRawBackend();
  const gate = await startSallyport({
    target: real.url,
    config: {
      server,
      upstreams: { app: { targets: [real.url] }, shadow: { targets: [shadow.url] } },
      routes: [
        {
          name: "all",
          path: "/",
          upstream: "app",
          mirror: { upstream: "shadow" },
          tokenFrom: [{ header: "Authorization" }, { cookie: "session" }, { query: "t" }],
        },
      ],
    },
  });
  const stack = new AsyncDisposableStack();
  for (const each of [real, shadow, gate]) stack.use(each);
  return { shadow, gate, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

it("tokens and forged identities are removed from the copy, wherever they were", async () => {
  await using standing = await start();
  const { gate, shadow } = standing;
  const head = ["Host: localhost", "X-Auth-Subject: root", "x_auth_groups: admin"];
  const hop = ["Connection: X-Auth-Groups, close", "X-Auth-Groups: admin"];
  const bytes = [
    request([`GET /a HTTP/1.1`, `Authorization: Bearer ${gate.token}`, ...head, ...hop]),
    request([`GET /a?t=${gate.token}&b=1 HTTP/1.1`, ...head]),
    request([
      `GET /a HTTP/1.1`,
      ...head,
      ...["Sec-Fetch-Site: same-origin", `Cookie: a=1; session=${gate.token}`],
    ]),
  ];
  for (const each of bytes) expect((await exchange(gate, each)).last.status).toBe(200);
  await until(() => shadow.requests().length === 3);
  for (const copy of shadow.requests()) {
    expect(JSON.stringify(copy)).not.toContain(gate.token);
    expect(valuesOf(copy.headers, "x-auth-subject")).toEqual(["alice"]);
    expect(valuesOf(copy.headers, "x-auth-groups")).toEqual(["sales"]);
    expect(valuesOf(copy.headers, "x_auth_groups")).toEqual([]);
  }
  expect(shadow.seen().toSorted()).toEqual(["GET /a", "GET /a", "GET /a?b=1"]);
});

it("a body that ends too early, or has two lengths, is not copied", async () => {
  await using standing = await start();
  const { gate, shadow } = standing;
  const head = ["POST /a HTTP/1.1", "Host: localhost", `Authorization: Bearer ${gate.token}`];
  await exchange(gate, request([...head, "Content-Length: 50000"], "half"), { timeoutMs: 300 });
  const both = ["Content-Length: 4", "Transfer-Encoding: chunked"];
  expect((await exchange(gate, request([...head, ...both], "0\r\n\r\n"))).last.status).toBe(400);
  const series = 'sallyport_mirrored_requests_total{upstream="shadow",result="body_incomplete"}';
  await until(async () => (await scrape(gate)).value(series) === 1);
  expect(shadow.requests()).toEqual([]);
});

it("copies take at most an eighth of the buffer budget, and no client is charged for them", async () => {
  await using standing = await start({ limits: { bufferedBytes: "4MiB" } }, true);
  const { gate, shadow } = standing;
  const body = "x".repeat(200_000);
  for (let i = 0; i < 10; i += 1) {
    const { status } = await ask(gate, "/a", { method: "POST", token: gate.token, body });
    expect(status).toBe(200);
  }
  const series = 'sallyport_mirrored_requests_total{upstream="shadow",result="memory"}';
  await until(async () => (await scrape(gate)).value(series) === 8);
  expect(shadow.connections).toHaveLength(2);
});
