import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { HashingPool } from "../../src/credentials/hashing/hashing-pool.ts";
import { openUserStore, type StoreSettings } from "../../src/credentials/stores/store-kinds.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { contentOf, STRANGER } from "../credentials/fixture.ts";
import { userStoreContract } from "../credentials/user-store-contract.ts";
import { testCertificates } from "../support/certificates.ts";
import { recordedLog } from "../support/recorded-log.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { postgresMissing, QUERY, startPostgres, type PostgresServer } from "./postgres-server.ts";
import { SETTINGS, slapdMissing, startSlapd, strict, type SlapdServer } from "./slapd-server.ts";

const ALICE = { name: "alice", password: "apple", groups: ["sales"] };
const LIMITS = { connections: 4, timeout: 2_000 };

async function authorityFile(): Promise<string> {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory.close());
  const { ca } = await testCertificates();
  await directory.write("ca.crt", ca);
  return join(directory.path, "ca.crt");
}

async function opened(settings: StoreSettings) {
  const verifier = new HashingPool({ concurrency: 1, queue: 100 });
  onTestFinished(() => verifier.close());
  const log = recordedLog();
  const store = await openUserStore(settings, {
    contentOf,
    log,
    verifier,
    clock: systemClock,
    queue: 100,
  });
  onTestFinished(() => store.close());
  const verify = (name = "alice", password = "apple") => store.verify(name, password, STRANGER);
  return { store, log, verify };
}

/** Expects prompt failures while the server is killed or hangs, and recovery without help. */
async function survives(
  settings: StoreSettings,
  server: Pick<PostgresServer, "hold" | "kill" | "start" | "signal">,
): Promise<void> {
  await server.hold([ALICE]);
  const { store, verify } = await opened(settings);
  expect(await verify()).toMatchObject({ result: "found" });
  expect(store.connections?.()).toBeGreaterThan(0);
  await server.kill();
  expect(await verify()).toEqual({ result: "unavailable" });
  expect(await store.examine?.(1_000)).toEqual(expect.any(String));
  await server.start();
  expect(await verify()).toMatchObject({ result: "found" });
  server.signal("SIGSTOP");
  const began = performance.now();
  const storm = await Promise.all(Array.from({ length: 20 }, () => verify()));
  expect(new Set(storm.map(({ result }) => result))).toEqual(new Set(["unavailable"]));
  expect(performance.now() - began).toBeLessThan(2 * LIMITS.timeout);
  server.signal("SIGCONT");
  expect(await verify()).toMatchObject({ result: "found" });
  expect(store.connections?.()).toBeLessThanOrEqual(2 * LIMITS.connections);
  expect(await store.examine?.(1_000)).toBeUndefined();
}

describe.skipIf(postgresMissing !== undefined)(`PostgreSQL ${postgresMissing ?? ""}`, () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  }, 60_000);
  afterAll(() => server[Symbol.asyncDispose]());

  const settings = async () => ({
    kind: "postgres" as const,
    url: server.url,
    query: QUERY,
    tls: true,
    ...LIMITS,
    caFile: await authorityFile(),
  });

  describe("as a user store", () => {
    userStoreContract({
      source: async () => ({ settings: await settings(), hold: server.hold, fail: server.kill }),
      hasGroups: true,
      failing: "unavailable",
      counts: false,
      inspects: false,
      oddNames: ["é", "e\u0301", "a:b", "a b", "*", "'", "toString", "__proto__", "%", "$1"],
    });
  });

  test(
    "fails in time during any outage, and recovers without help",
    { timeout: 60_000 },
    async () => {
      await survives(await settings(), server);
    },
  );

  test("its certificate is verified", async () => {
    await server.hold([ALICE]);
    const { caFile: _, ...trustful } = await settings();
    const { store, verify, log } = await opened(trustful);
    expect(await verify()).toEqual({ result: "unavailable" });
    expect(await store.examine?.(1_000)).toMatch(/CERT|VERIFY/);
    expect(JSON.stringify(log.lines)).not.toContain("of-the-test");
  });

  test("wrong credentials and wrong queries are reported without secrets", async () => {
    await server.hold([ALICE]);
    const sound = await settings();
    const refused = await opened({ ...sound, url: server.url.replace("of-the-test", "hunter22") });
    expect(await refused.store.examine?.(1_000)).toBe("28P01");
    const wrong = await opened({ ...sound, query: "SELECT hash FROM users WHERE name = $1" });
    expect(await wrong.store.examine?.(1_000)).toContain("password_hash");
    const nowhere = await opened({ ...sound, query: "SELECT x FROM nowhere WHERE name = $1" });
    expect(await nowhere.verify()).toEqual({ result: "unavailable" });
    expect(await nowhere.store.examine?.(1_000)).toBe("42P01");
    const several = await opened({
      ...sound,
      query: "SELECT hash AS password_hash FROM users, (VALUES (1), (2)) AS two(n) WHERE name = $1",
    });
    expect(await several.verify()).toEqual({ result: "unavailable" });
    expect(JSON.stringify([refused, nowhere].map(({ log }) => log.lines))).not.toMatch(/hunter22/);
  });
});

describe.skipIf(slapdMissing !== undefined)(`OpenLDAP ${slapdMissing ?? ""}`, () => {
  let server: SlapdServer;
  beforeAll(async () => {
    server = await startSlapd();
  }, 60_000);
  afterAll(() => server[Symbol.asyncDispose]());

  const sorts = {
    "ldaps://": async () => ({ url: server.secureUrl, caFile: await authorityFile() }),
    StartTLS: async () => ({ url: server.url, startTls: true, caFile: await authorityFile() }),
    "ldap://": async () => ({ url: server.url, startTls: false }),
  };
  const settings = async (sort: keyof typeof sorts) => ({
    kind: "ldap" as const,
    ...SETTINGS,
    ...LIMITS,
    ...(await sorts[sort]()),
  });

  describe.each(["ldaps://", "StartTLS"] as const)("as a user store with %s", (sort) => {
    userStoreContract({
      async source() {
        return { settings: await settings(sort), hold: server.hold, fail: server.kill };
      },
      hasGroups: true,
      failing: "unavailable",
      counts: false,
      inspects: false,
      oddNames: ["é", "a b", "*", "'", "toString", "__proto__", "alice)(uid=*", "a\\2ab", "a,b=c"],
    });
  });

  test.each(["ldaps://", "StartTLS", "ldap://"] as const)(
    "with %s it fails in time during any outage, and recovers without help",
    { timeout: 60_000 },
    async (sort) => {
      await survives(await settings(sort), server);
    },
  );

  test.each(["ldaps://", "StartTLS"] as const)(
    "with %s its certificate is verified",
    async (sort) => {
      await server.hold([ALICE]);
      const { caFile: _, ...trustful } = { caFile: "", ...(await settings(sort)) };
      const { store, verify, log } = await opened(trustful);
      expect(await verify()).toEqual({ result: "unavailable" });
      expect(await store.examine?.(1_000)).toMatch(/CERT|VERIFY/);
      expect(JSON.stringify(log.lines)).not.toMatch(/of-the-test|apple/);
    },
  );

  test("wrong bind credentials are a fault of the store, not of the user", async () => {
    await server.hold([ALICE]);
    const bind = { ...SETTINGS.bind, password: "hunter22" };
    const { store, verify, log } = await opened({ ...(await settings("ldaps://")), bind });
    expect(await verify()).toEqual({ result: "unavailable" });
    expect(await store.examine?.(1_000)).toContain("refuses the credentials");
    expect(JSON.stringify(log.lines)).not.toContain("hunter22");
  });

  test("logs the reason of a password policy", async () => {
    await server.hold([ALICE]);
    await strict(server, "alice");
    const { verify, log } = await opened(await settings("StartTLS"));
    for (let attempt = 0; attempt < 3; attempt += 1) await verify("alice", "wrong");
    expect(await verify()).toEqual({ result: "wrong" });
    const policyLine = log.lines.find(({ level }) => level === "info");
    expect(JSON.stringify(policyLine)).toContain("account_locked");
    expect(JSON.stringify(log.lines)).not.toMatch(/apple|wrong/);
  });
});
