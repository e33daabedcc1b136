import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { command } from "../cli/command.ts";
import { ask } from "../support/ask.ts";
import { testCertificates } from "../support/certificates.ts";
import { ALICE, type Sallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";
import { missing } from "../support/program.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { until } from "../support/until.ts";
import { postgresMissing, QUERY, startPostgres } from "./postgres-server.ts";
import { type DelayedRelay, startRelay } from "./relay.ts";
import { logInAt, type Replicas, startReplicas, underLoad } from "./replicas.ts";
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
  start(): Promise<{
    readonly server: Held;
    readonly port: number;
    entry(port: number, caFile: string): object;
    readonly faults: Readonly<Record<string, Fault>>;
  }>;
}

/** A fault inside a running server. */
interface Fault {
  harm(): Promise<unknown>;
  heal(): Promise<unknown>;
  /** The status of a login that needs the store. */
  readonly status: 401 | 503;
}

const SUBJECTS: readonly Subject[] = [
  {
    kind: "ldap",
    reason: slapdMissing,
    async start() {
      const server = await startSlapd();
      const entry = (port: number, caFile: string): object => ({
        kind: "ldap",
        url: `ldap://127.0.0.1:${port}`,
        startTls: true,
        caFile,
        ...SETTINGS,
      });
      const { base } = SETTINGS.search;
      const faults: Record<string, Fault> = {
        emptied: emptied(server),
        "without its part of the tree": {
          harm: () => server.admin((client) => client.modifyDN(base, "ou=gone")),
          heal: () =>
            server.admin((client) => client.modifyDN(base.replace("people", "gone"), "ou=people")),
          status: 503,
        },
      };
      return { server, port: server.port, entry, faults };
    },
  },
  {
    kind: "postgres",
    reason: postgresMissing,
    async start() {
      const server = await startPostgres();
      const entry = (port: number, caFile: string): object => {
        const url = new URL(server.url);
        url.port = String(port);
        return { kind: "postgres", url: url.href, query: QUERY, caFile };
      };
      const faults: Record<string, Fault> = {
        emptied: emptied(server),
        "without its table": {
          harm: () => server.query("ALTER TABLE users RENAME TO gone"),
          heal: () => server.query("ALTER TABLE gone RENAME TO users"),
          status: 503,
        },
        "full of connections": {
          async harm() {
            await server.query("ALTER ROLE sallyport CONNECTION LIMIT 0");
            await server.query(
              "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'sallyport'",
            );
          },
          heal: () => server.query("ALTER ROLE sallyport CONNECTION LIMIT -1"),
          status: 503,
        },
      };
      return { server, port: server.port, entry, faults };
    },
  },
];

function emptied(server: Held): Fault {
  return { harm: () => server.hold([]), heal: () => server.hold(USERS), status: 401 };
}

describe.each(SUBJECTS)("three replicas with a $kind store and a file", (subject) => {
  const { kind } = subject;
  const reason = subject.reason ?? missing("nginx");
  const stack = new AsyncDisposableStack();
  let server: Held;
  let relay: DelayedRelay;
  let faults: Readonly<Record<string, Fault>> = {};
  let replicas: Replicas;
  /** One of the replicas. */
  let gate: Sallyport;

  beforeAll(async () => {
    if (reason !== undefined) return;
    const started = await subject.start();
    server = stack.use(started.server);
    relay = stack.use(await startRelay(started.port));
    await server.hold(USERS);
    ({ faults } = started);
    const { ca } = await testCertificates();
    const directory = stack.adopt(await temporaryDirectory(), (each) => each.close());
    const entry = started.entry(relay.port, await directory.write("ca.crt", ca));
    replicas = stack.use(
      await startReplicas({
        admin: { listen: "127.0.0.1:0", ready: { users: true } },
        users: [
          { kind: "file", path: "users.yaml" },
          { ...entry, connections: 2, timeout: "1s" },
        ],
      }),
    );
    [gate] = replicas.gates as [Sallyport];
  }, 60_000);
  afterAll(() => stack.disposeAsync());

  /** Returns the readiness of all replicas; undefined while they differ. */
  const ready = async (): Promise<number | undefined> => {
    const answers = replicas.gates.map(({ adminPort }) => ask({ port: adminPort }, "/readyz"));
    const [status, ...more] = new Set((await Promise.all(answers)).map((each) => each.status));
    return more.length === 0 ? status : undefined;
  };
  let addresses = 0;
  /** Logs in from a new address each time, so that the throttle does not interfere. */
  const logIn = (name: string, password: string, at: { readonly port: number } = gate) =>
    logInAt(at, name, password, `198.51.100.${(addresses += 1)}`);
  const logInAtAll = () => Promise.all(replicas.gates.map((each) => logIn("bob", "banana", each)));

  test.skipIf(reason !== undefined)("queries the stores in order", async () => {
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
    "while it is %s, logins that need it get 503, and nothing else is affected",
    { timeout: 60_000 },
    async (fault) => {
      const { harm, heal } = FAULTS[fault];
      const { statuses } = await underLoad(replicas.front, gate.token, async () => {
        await harm();
        const refused = await Promise.all([
          ...Array.from({ length: 6 }, (_, place) =>
            logIn("bob", "banana", replicas.gates[place % 3]),
          ),
          logIn("nobody", "x"),
        ]);
        expect(new Set(refused.map(({ status }) => status))).toEqual(new Set([503]));
        expect(refused.every(({ retryAfter }) => Number(retryAfter) >= 1)).toBe(true);
        // Users of the first store do not need the second.
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
    "while it has a fault, requests with a token are unaffected, and logins recover by themselves",
    { timeout: 120_000 },
    async () => {
      for (const [fault, { harm, heal, status }] of Object.entries(faults)) {
        const { statuses } = await underLoad(replicas.front, gate.token, async () => {
          await harm();
          const refused = await logInAtAll();
          expect([fault, refused.map((each) => each.status)]).toEqual([
            fault,
            refused.map(() => status),
          ]);
          expect((await logIn(ALICE.username, ALICE.password)).status).toBe(200);
          await heal();
          await until(
            async () => (await logInAtAll()).every((each) => each.status === 200),
            20_000,
          );
          await until(async () => (await ready()) === 200, 20_000);
        });
        expect([fault, Object.keys(statuses)]).toEqual([fault, ["200"]]);
      }
    },
  );

  test.skipIf(reason !== undefined)("while it is slow, only logins are slow", async () => {
    const { statuses, slowestMs } = await underLoad(replicas.front, gate.token, async () => {
      relay.delayMs = 200;
      const began = performance.now();
      expect((await logIn("bob", "banana")).status).toBe(200);
      expect(performance.now() - began).toBeGreaterThan(200);
      relay.delayMs = 0;
    });
    expect(Object.keys(statuses)).toEqual(["200"]);
    expect(slowestMs).toBeLessThan(2_000);
  });

  test.skipIf(reason !== undefined)("doctor reports its state", async () => {
    const file = join(gate.directory, "config.yaml");
    onTestFinished(() => server.start());
    const sound = await command(["doctor", "--config", file]);
    expect(sound.out).toMatch(new RegExp(`${kind}: answers in \\d+ ms`));
    await server.kill();
    const ill = await command(["doctor", "--config", file]);
    expect(ill.out).toContain(`${kind}: is unavailable`);
    expect(ill.code).toBe(1);
  });
});
