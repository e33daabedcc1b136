/**
 * Tokens of service accounts, reviewed by the API server itself: their audience counts, RBAC decides, and an earlier yes stands
 * while the API server is away. Sallyport runs here, and reaches the API server through a relay, which can be cut. Its certificate must
 * be for 127.0.0.1, too.
 */
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ask } from "../support/ask.ts";
import { startEchoBackend } from "../support/echo-backend.ts";
import { echoedBy } from "../support/echoed.ts";
import { listeningPort } from "../support/listening-port.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";
import { until } from "../support/until.ts";
import { whyNoCluster } from "./cluster.ts";
import { kubectl } from "./kubectl.ts";

const STALE_MS = 8_000;

describe.skipIf(whyNoCluster() !== undefined)("the API server's word about a token", () => {
  const stack = new AsyncDisposableStack();
  const namespace = `sallyport-test-review-${Date.now().toString(36)}`;
  const rbac = ["auth-delegator", "orders"].map((name) => `${namespace}-${name}`);
  let gate: Sallyport;
  let away = false;

  const made = async (...args: string[]) => (await kubectl(["-n", namespace, ...args])).stdout;
  const token = async (account: string, ...more: string[]) =>
    (await made("create", "token", account, ...more)).trim();
  const status = async (bearer: string, path = "/who") =>
    (await ask(gate, path, { token: bearer })).status;

  beforeAll(async () => {
    await kubectl(["create", "namespace", namespace]);
    stack.defer(async () => {
      await kubectl(["delete", "namespace", namespace, "--wait=false"]);
      await kubectl(["delete", "clusterrolebinding", ...rbac]);
      await kubectl(["delete", "clusterrole", rbac[1] ?? ""]);
    });
    for (const name of ["reviewer", "caller", "stranger"]) {
      await made("create", "serviceaccount", name);
    }
    const [delegator = "", orders = ""] = rbac;
    const account = (name: string) => `--serviceaccount=${namespace}:${name}`;
    const binding = ["create", "clusterrolebinding"];
    await made(...binding, delegator, "--clusterrole=system:auth-delegator", account("reviewer"));
    await made("create", "clusterrole", orders, "--verb=get", "--non-resource-url=/orders/*");
    await made(...binding, orders, `--clusterrole=${orders}`, account("caller"));

    const view = await kubectl(["config", "view", "--raw", "--minify", "--flatten", "-o", "json"]);
    const { cluster } = JSON.parse(view.stdout).clusters[0];
    const { hostname, port } = new URL(cluster.server);
    const sockets = new Set<Socket>();
    const relay = createServer((client) => {
      if (away) {
        client.destroy();
        return;
      }
      const server = connect(Number(port || 443), hostname);
      for (const [from, to] of [[client, server] as const, [server, client] as const]) {
        sockets.add(from);
        from.on("error", () => to.destroy()).on("close", () => to.destroy());
        from.pipe(to);
      }
      setInterval(() => away && client.destroy(), 50).unref();
    });
    await once(relay.listen(0, "127.0.0.1"), "listening");
    stack.defer(() => {
      for (const socket of sockets) socket.destroy();
      relay.close();
    });
    const backend = stack.use(await startEchoBackend());
    const review = {
      apiServer: `https://127.0.0.1:${listeningPort(relay)}`,
      caFile: "ca.crt",
      tokenFile: "reviewer.token",
      cache: "500ms",
      staleFor: `${STALE_MS}ms`,
    };
    gate = stack.use(
      await startSallyport({
        withoutToken: true,
        target: backend.url,
        config: {
          tokens: {
            trusted: [
              { issuer: "kubernetes", tokenReview: { ...review, audiences: ["orders.shop"] } },
            ],
          },
          authorization: { rbac: { kind: "subjectAccessReview", ...review } },
          routes: [
            { name: "orders", path: "/orders", upstream: "app", authorize: "rbac" },
            { name: "who", path: "/who", upstream: "app" },
          ],
        },
        files: {
          "ca.crt": Buffer.from(cluster["certificate-authority-data"], "base64").toString(),
          "reviewer.token": await token("reviewer"),
        },
      }),
    );
  });
  afterAll(() => stack.disposeAsync());

  test("counts for tokens with our audience alone, and RBAC decides about paths", async () => {
    const caller = await token("caller", "--audience=orders.shop");
    const answer = await ask(gate, "/who", { token: caller });
    expect(echoedBy(answer).header("x-auth-subject")).toBe(
      `system:serviceaccount:${namespace}:caller`,
    );
    expect(await status(caller, "/orders/1")).toBe(200);
    const stranger = await token("stranger", "--audience=orders.shop");
    expect([await status(stranger), await status(stranger, "/orders/1")]).toEqual([200, 403]);
    const unfit = [await token("caller"), await token("caller", "--audience=invoices.shop")];
    expect([await status(unfit[0] ?? ""), await status(unfit[1] ?? "")]).toEqual([401, 401]);
  });

  test("stands for staleFor while the API server is away, and for no new token", async () => {
    const caller = await token("caller", "--audience=orders.shop");
    const late = await token("caller", "--audience=orders.shop", "--duration=2h");
    expect([await status(caller), await status(caller, "/orders/1")]).toEqual([200, 200]);
    away = true;
    const began = performance.now();
    const stale = async () =>
      (await scrape(gate)).sum("sallyport_remote_checks_total", 'result="stale"');
    await until(async () => {
      expect([await status(caller), await status(caller, "/orders/1")]).toEqual([200, 200]);
      return (await stale()) > 2;
    });
    expect(await status(late)).toBe(503);
    await until(async () => (await status(caller)) === 503, 2 * STALE_MS);
    expect(performance.now() - began).toBeGreaterThan(STALE_MS - 1_000);
    expect(gate.log()).toContainEqual(
      expect.objectContaining({ msg: "a remote check is unavailable", kind: "tokenReview" }),
    );
    away = false;
    await until(async () => (await status(late)) === 200);
    expect([await status(caller), await status(caller, "/orders/1")]).toEqual([200, 200]);
  });
});
