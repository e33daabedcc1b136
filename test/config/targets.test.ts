import { expect, test } from "vitest";
import { load, problemsOf, SMALLEST } from "./configuration-file.ts";

const app = (text: string): string =>
  `server: { tls: off }\nupstreams: { app: { targets: ["http://h", "http://i"], ${text} } }\n`;

test.each([
  ["an unknown balance", "balance: sticky", "upstreams.app.balance"],
  ["a path without a slash", "health: { path: healthz }", "upstreams.app.health.path"],
  ["a status of 100", 'health: { path: /, status: "100-399" }', "upstreams.app.health.status"],
  ["a reversed range", 'health: { path: /, status: "399-200" }', "upstreams.app.health.status"],
  [
    "an interval that is too short",
    "health: { path: /, interval: 1ms }",
    "upstreams.app.health.interval",
  ],
  ["a percentage without its sign", 'ejection: { most: "50" }', "upstreams.app.ejection.most"],
  ["more than 100 %", "ejection: { most: 150% }", "upstreams.app.ejection.most"],
  [
    "a DNS server by name",
    'resolve: { servers: ["dns.test"] }',
    "upstreams.app.resolve.servers[0]",
  ],
  [
    "a DNS server at port 0",
    'resolve: { servers: ["10.0.0.1:0"] }',
    "upstreams.app.resolve.servers[0]",
  ],
  ["0 failures", "ejection: { failures: 0 }", "upstreams.app.ejection.failures"],
])("refused: %s", async (_what, text, key) => {
  const problems = await problemsOf(app(text));
  expect(problems.map(({ message }) => message.split(" ")[0])).toEqual([key]);
});

test("a retry on an unknown cause is refused", async () => {
  const text = `${SMALLEST}routes: [{ name: r, upstream: app, retry: { on: ["500"] } }]\n`;
  const problems = await problemsOf(text);
  expect(problems.map(({ message }) => message.split(" ")[0])).toEqual(["routes[0].retry.on[0]"]);
});

test("a retry on a status may be a number or a text", async () => {
  const text = `${SMALLEST}routes: [{ name: r, upstream: app, retry: { on: [connect, 503, "504"] } }]\n`;
  const { configuration } = await load(text);
  expect(configuration.routes[0]?.retry?.on).toEqual(["connect", "503", "504"]);
  const wrong = text.replace("503", "500");
  expect((await problemsOf(wrong)).map(({ message }) => message)).toEqual([
    expect.stringMatching(
      /^routes\[0\]\.retry\.on\[1\] must be one of connect, stale, 502, 503, 504/,
    ),
  ]);
});

test("resolve without a name is refused", async () => {
  const text = `server: { tls: off }\nupstreams: { app: { targets: ["http://10.0.0.1", "unix:/a", "http://[::1]:1"], resolve: {} } }\n`;
  const problems = await problemsOf(text);
  expect(problems.map(({ message }) => message)).toEqual([
    "upstreams.app.resolve has nothing to resolve: no target has a name",
  ]);
});

test("targets may have weights", async () => {
  const text = `server: { tls: off }\nupstreams: { app: { targets: [http://h, { url: http://i, weight: 3 }] } }\n`;
  const { configuration } = await load(text);
  expect(configuration.upstreams["app"]).toMatchObject({
    targets: ["http://h", "http://i"],
    weights: [1, 3],
  });
});

test.each([
  ["http2", "http://h", "must be https:// for HTTP/2"],
  ["h2c", "https://h", "must not be https:// for h2c"],
  ["h2c", "unix:/x", undefined],
  ["http2", "https://h", undefined],
])("%s to %s", async (protocol, target, message) => {
  const text = `server: { tls: off }\nupstreams: { app: { protocol: ${protocol}, targets: ["${target}"] } }\n`;
  if (message === undefined) {
    expect((await load(text)).configuration.upstreams["app"]).toMatchObject({ protocol });
    return;
  }
  const problems = await problemsOf(text);
  expect(problems.map((problem) => problem.message)).toEqual([
    expect.stringContaining(`upstreams.app.targets[0] ${message}`),
  ]);
});

test.each([
  ["kind: grpc, path: /", "protocol: h2c", "upstreams.app.health.path needs kind: http"],
  ["kind: grpc", "connections: 1", "upstreams.app.health.kind must not be grpc without protocol"],
  ["path: /, service: a.B", "protocol: h2c", "upstreams.app.health.service needs kind: grpc"],
  ["interval: 1s", "protocol: h2c", "upstreams.app.health needs path"],
  ["kind: grpc, service: a b", "protocol: h2c", "upstreams.app.health.service must be the name"],
])("a health check of %s with %s is refused", async (health, other, message) => {
  const problems = await problemsOf(app(`health: { ${health} }, ${other}`));
  expect(problems.map((problem) => problem.message)).toEqual([expect.stringContaining(message)]);
});
