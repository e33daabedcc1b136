import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { command } from "../cli/command.ts";
import { ask } from "../support/ask.ts";
import { testCertificates } from "../support/certificates.ts";
import { type EchoBackend, startEchoBackend } from "../support/echo-backend.ts";
import { ALICE, type Sallyport, startSallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";
import { until } from "../support/until.ts";
import { postgresMissing, QUERY, startPostgres } from "./postgres-server.ts";
import { type DelayedRelay, startRelay } from "./relay.ts";
import { logInAt, underLoad } from "./replicas.ts";
import { SETTINGS, slapdMissing, startSlapd } from "./slapd-server.ts";
import type { StoreServer } from "./store-server.ts";
import type { ContractUser } from "../credentials/user-store-contract.ts";

const USERS = [
  { name: "bob", password: "banana", groups: ["sales"] },
  { name: "carol", password: "cherry", groups: [] },
];

type Held = StoreServer & { hold(users: readonly ContractUser[]): Promise<void> };

interface Subject {
  readonly kind: string;
  readonly reason: string | undefined;
  start(): Promise<{ readonly server: Held; readonly port: number; entry(port: number): object }>;
}

const SUBJECTS: readonly Subject[] = [
  {
    ...{ kind: "ldap", reason: slapdMissing },
    async start() {
      const server = await startSlapd();
      const entry = (port: number): object => ({
        ...{ kind: "ldap", url: `ldap://127.0.0.1:${port}`, startTls: true, caFile: "ca.crt" },
        ...SETTINGS,
      });
      return { server, port: server.port, entry };
    },
  },
  {
    ...{ kind: "postgres", reason: postgresMissing },
    async start() {
      const server = await startPostgres();
      const entry = (port: number): object => {
        const url = new URL(server.url);
        url.port = String(port);
        return { kind: "postgres", url: url.href, query: QUERY, caFile: "ca.crt" };
      };
      return { server, port: server.port, entry };
    },
  },
];

describe.each(SUBJECTS)("Sallyport with a $kind store of its own and a file", (subject) => {
  const { kind, reason } = subject;
  const stack = new AsyncDisposableStack();
  let server: Held;
  let relay: DelayedRelay;
  let backend: EchoBackend;
  let gate: Sallyport;

  beforeAll(async () => {
    if (reason !== undefined) return;
    const started = await subject.start();
    server = stack.use(started.server);
    relay = stack.use(await startRelay(started.port));
    await server.hold(USERS);
    backend = stack.use(await startEchoBackend());
    const { ca } = await testCertificates();
    gate = stack.use(
      await startSallyport({
        target: backend.url,
        config: {
          server: { tls: "off", trustedProxies: ["127.0.0.1/32"] },
          admin: { listen: "127.0.0.1:0", ready: { users: true } },
          users: [
            { kind: "file", path: "users.yaml" },
            { ...started.entry(relay.port), connections: 2, timeout: "1s" },
          ],
        },
        files: { "ca.crt": ca },
      }),
    );
  }, 60_000);
  afterAll(() => stack.disposeAsync());

  const ready = async (): Promise<number> =>
    (await ask({ port: gate.adminPort }, "/readyz")).status;
  let addresses = 0;
  /** From another address each time: no throttle joins in. */
  const logIn = (name: string, password: string) =>
    logInAt(gate, name, password, `198.51.100.${(addresses += 1)}`);

  test.skipIf(reason !== undefined)("asks the stores in order", async () => {
    expect((await logIn("bob", "banana")).status).toBe(200);
    expect((await logIn("bob", "wrong")).status).toBe(401);
    expect((await logIn("nobody", "x")).status).toBe(401);
    expect((await logIn(ALICE.username, "wrong")).status).toBe(401);
    expect((await logIn(ALICE.username, ALICE.password)).status).toBe(200);
    expect(await ready()).toBe(200);
    const page = await scrape(gate);
    expect(page.value(`sallyport_user_store_connections{store="${kind}"}`)).toBeGreaterThan(0);
    expect(page.sum("sallyport_user_store_requests_total", `store="${kind}"`)).toBe(3);
  });

  const FAULTS = {
    killed: { harm: () => server.kill(), heal: () => server.start() },
    hung: {
      harm: async () => server.signal("SIGSTOP"),
      heal: async () => server.signal("SIGCONT"),
    },
  };

  test.skipIf(reason !== undefined).each(["killed", "hung"] as const)(
    "while it is %s, logins that need it get 503, and nothing else is touched",
    { timeout: 60_000 },
    async (fault) => {
      const { harm, heal } = FAULTS[fault];
      const { statuses } = await underLoad(gate, gate.token, async () => {
        await harm();
        const refused = await Promise.all([
          ...Array.from({ length: 6 }, () => logIn("bob", "banana")),
          logIn("nobody", "x"),
        ]);
        expect(new Set(refused.map(({ status }) => status))).toEqual(new Set([503]));
        expect(refused.every(({ retryAfter }) => Number(retryAfter) >= 1)).toBe(true);
        // Who is in the first store does not need the second.
        expect((await logIn(ALICE.username, ALICE.password)).status).toBe(200);
        await until(async () => (await ready()) === 503);
        await heal();
        await until(async () => (await logIn("bob", "banana")).status === 200, 20_000);
        await until(async () => (await ready()) === 200, 20_000);
      });
      expect(Object.keys(statuses)).toEqual(["200"]);
    },
  );

  test.skipIf(reason !== undefined)(
    "while it is slow, logins are slow, and nothing else",
    async () => {
      const { statuses, slowestMs } = await underLoad(gate, gate.token, async () => {
        relay.delayMs = 200;
        const began = performance.now();
        expect((await logIn("bob", "banana")).status).toBe(200);
        expect(performance.now() - began).toBeGreaterThan(200);
        relay.delayMs = 0;
      });
      expect(Object.keys(statuses)).toEqual(["200"]);
      expect(slowestMs).toBeLessThan(2_000);
    },
  );

  test.skipIf(reason !== undefined)("doctor says how it is", async () => {
    const file = join(gate.directory, "config.yaml");
    onTestFinished(() => server.start());
    const sound = await command(["doctor", "--config", file]);
    expect(sound.out).toMatch(new RegExp(`${kind}: answers in \\d+ ms`));
    await server.kill();
    const ill = await command(["doctor", "--config", file]);
    expect(ill.out).toContain(`${kind}: cannot be asked`);
    expect(ill.code).toBe(1);
  });
});
