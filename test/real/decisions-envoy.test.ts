/** What Envoy makes of the answers over gRPC: fields that it changes, metadata, and the time that it waits. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { missingAsker, type RunningAsker, startAsker } from "../support/askers.ts";
import { type EchoBackend, startEchoBackend } from "../support/echo-backend.ts";
import { echoedBy } from "../support/echoed.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";
import { until } from "../support/until.ts";

const NAME = "Envoy over gRPC";
const reason = missingAsker(NAME);

const ROUTES = [
  { name: "public", path: "/public/", auth: "none", upstream: "app" },
  {
    name: "query",
    path: "/query",
    upstream: "app",
    tokenFrom: [{ query: "access_token" }, { header: "X-Api-Token" }],
  },
  {
    name: "tiers",
    path: "/tiers",
    upstream: "app",
    requestHeaders: { set: { "X-Tier": "gold" }, remove: ["X-Internal"] },
  },
  { name: "everything", path: "/", upstream: "app" },
];

/** Lets Envoy write the metadata of each request to its output. */
function logged(text: string): string {
  const log = `access_log:
                  - name: envoy.access_loggers.stdout
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.access_loggers.stream.v3.StdoutAccessLog
                      log_format: { text_format_source: { inline_string: "%REQ(:PATH)% %DYNAMIC_METADATA(envoy.filters.http.ext_authz)%\\n" } }`;
  return text.replace("stat_prefix: web", `stat_prefix: web\n                ${log}`);
}

describe.skipIf(reason !== undefined)(`${NAME} ${reason ?? ""}`, () => {
  const stack = new AsyncDisposableStack();
  let backend: EchoBackend;
  let gate: Sallyport;
  let proxy: RunningAsker;
  beforeAll(async () => {
    backend = stack.use(await startEchoBackend());
    const config = {
      server: { tls: "off", http2: true },
      decisions: { from: ["127.0.0.1/32"], grpc: true, http: false },
      browser: {},
      routes: ROUTES,
    };
    gate = stack.use(await startSallyport({ target: backend.url, config }));
    proxy = stack.use(await startAsker(NAME, backend.url, gate.port, logged));
  });
  afterAll(() => stack.disposeAsync());

  it("overwrites the identity, and removes credentials", async () => {
    const headers = { "X-Auth-Subject": "root", "X-Auth-Client-Subject": "CN=root" };
    const { header } = echoedBy(await ask(proxy, "/orders", { token: gate.token, headers }));
    expect(header("x-auth-subject")).toBe("alice");
    expect(header("x-auth-client-subject")).toBeUndefined();
    expect(header("authorization")).toBeUndefined();
  });

  it("removes a token from the query, and from a header", async () => {
    const target = `/query?a=1&access_token=${gate.token}&b=2`;
    expect(echoedBy(await ask(proxy, target)).url).toBe("/query?a=1&b=2");
    const headers = { "X-Api-Token": gate.token };
    const { header } = echoedBy(await ask(proxy, "/query?a=1", { headers }));
    expect(header("x-api-token")).toBeUndefined();
    expect(header("x-auth-subject")).toBe("alice");
  });

  it("rewrites cookies, and changes the headers of the route", async () => {
    const cookie = `a=1; __Host-sallyport=${gate.token}; b=2`;
    expect(echoedBy(await ask(proxy, "/orders", { headers: { cookie } })).header("cookie")).toBe(
      "a=1; b=2",
    );
    const headers = { "X-Tier": "free", "X-Internal": "1" };
    const { header } = echoedBy(await ask(proxy, "/tiers", { token: gate.token, headers }));
    expect(header("x-tier")).toBe("gold");
    expect(header("x-internal")).toBeUndefined();
  });

  it("gives the client the whole refusal", async () => {
    const refused = await ask(proxy, "/orders", { token: "x.y.z" });
    expect(refused).toMatchObject({
      status: 401,
      headers: {
        "www-authenticate": 'Bearer realm="sallyport", error="invalid_token"',
        "content-type": "application/json",
        "cache-control": "no-store",
      },
      body: expect.stringContaining("Full authentication is required"),
    });
  });

  it("knows who called, in its metadata", async () => {
    await ask(proxy, "/orders/known", { token: gate.token });
    await ask(proxy, "/public/unknown");
    const lines = (): string[] => proxy.output().split("\n");
    const metadataOf = (path: string) => lines().find((line) => line.startsWith(`${path} `));
    await until(() => metadataOf("/orders/known") !== undefined, 15_000);
    const [, ...words] = metadataOf("/orders/known")?.split(" ") ?? [];
    expect(JSON.parse(words.join(" "))).toMatchObject({
      subject: "alice",
      groups: ["sales"],
      issuer: "sallyport",
    });
    await until(() => metadataOf("/public/unknown") !== undefined, 15_000);
    expect(metadataOf("/public/unknown")).not.toContain("subject");
  });

  it("waits a second for an answer, and then lets nobody pass", async () => {
    const before = backend.requests.length;
    gate.signal("SIGSTOP");
    try {
      const began = performance.now();
      const { status } = await ask(proxy, "/orders", { token: gate.token });
      expect(status).toBe(403);
      expect(performance.now() - began).toBeLessThan(3_000);
    } finally {
      gate.signal("SIGCONT");
    }
    expect(backend.requests.length).toBe(before);
    await until(async () => (await ask(proxy, "/orders", { token: gate.token })).status === 200);
  });
});
