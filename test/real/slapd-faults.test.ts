/**
 * A directory server that runs out of a resource: users it cannot check get 503, never the result of the next store.
 */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { cheapHash } from "../credentials/fixture.ts";
import { ask } from "../support/ask.ts";
import { testCertificates } from "../support/certificates.ts";
import { startEchoBackend } from "../support/echo-backend.ts";
import { missing } from "../support/program.ts";
import { ALICE, type Sallyport, startSallyport } from "../support/sallyport.ts";
import { until } from "../support/until.ts";
import { startRelay } from "./relay.ts";
import { logInAt } from "./replicas.ts";
import { SETTINGS, slapdMissing, type SlapdServer, startSlapd, strict } from "./slapd-server.ts";
import { smallDisk } from "./small-disk.ts";

const BOB = { name: "bob", password: "banana", groups: ["sales"] };
const CAROL = { name: "carol", password: "cherry", groups: [] };

async function startGate(port: number): Promise<Sallyport> {
  const backend = await startEchoBackend();
  onTestFinished(() => backend.close());
  const { ca } = await testCertificates();
  const users = (name: string, password: string) =>
    JSON.stringify({ users: { [name]: { password: cheapHash(password) } } });
  const gate = await startSallyport({
    target: backend.url,
    config: {
      server: { tls: "off", trustedProxies: ["127.0.0.1/32"] },
      users: [
        { kind: "file", path: "users.yaml" },
        {
          kind: "ldap",
          url: `ldap://127.0.0.1:${port}`,
          startTls: true,
          caFile: "ca.crt",
          ...SETTINGS,
          connections: 2,
          timeout: "1s",
        },
        { kind: "file", path: "more.yaml" },
      ],
    },
    files: {
      "ca.crt": ca,
      "users.yaml": users(ALICE.username, ALICE.password),
      "more.yaml": users(BOB.name, "of the next store"),
    },
  });
  onTestFinished(() => gate.close());
  return gate;
}

let addresses = 0;
/** Logs in from a new address each time, so that the throttle does not interfere. */
const logIn = (gate: Sallyport, name: string, password: string) =>
  logInAt(gate, name, password, `198.51.100.${(addresses += 1)}`);

async function expectNoSecrets(gate: Sallyport): Promise<void> {
  const log = JSON.stringify(gate.log()) + gate.stderr();
  for (const secret of [BOB.password, CAROL.password, SETTINGS.bind.password, "of the next"]) {
    expect(log).not.toContain(secret);
  }
}

describe.skipIf(slapdMissing !== undefined)(`OpenLDAP ${slapdMissing ?? ""}`, () => {
  test.skipIf(missing("prlimit") !== undefined)(
    "out of file descriptors: logins get 503 until some are free",
    { timeout: 60_000 },
    async () => {
      await using server = await startSlapd();
      await server.hold([BOB]);
      await using relay = await startRelay(server.port);
      const gate = await startGate(relay.port);
      expect((await logIn(gate, "bob", "banana")).status).toBe(200);
      const limit = (most: number): void =>
        void execFileSync("prlimit", [`--pid=${server.pid()}`, `--nofile=${most}:`]);
      // Other connections take the ones that it has.
      const others = Array.from({ length: 5 }, () => connect(server.port, "127.0.0.1"));
      onTestFinished(() => others.forEach((each) => each.destroy()));
      await Promise.all(others.map((each) => once(each, "connect")));
      await server.admin(async () => undefined);
      limit(3);
      relay.cut();
      for (const password of ["banana", "wrong", "of the next store"]) {
        const refused = await logIn(gate, "bob", password);
        expect([password, refused.status]).toEqual([password, 503]);
        expect(Number(refused.retryAfter)).toBeGreaterThanOrEqual(1);
      }
      expect((await logIn(gate, ALICE.username, ALICE.password)).status).toBe(200);
      expect((await ask({ port: gate.port }, "/x", { token: gate.token })).status).toBe(200);
      await until(() => gate.log().some((line) => line["level"] === "error"));
      limit(1_024);
      for (const each of others) each.destroy();
      await until(async () => (await logIn(gate, "bob", "banana")).status === 200, 30_000);
      expect((await logIn(gate, "bob", "wrong")).status).toBe(401);
      await expectNoSecrets(gate);
    },
  );

  const disk = { possible: false };
  beforeAll(async () => {
    await using probe = await smallDisk();
    disk.possible = probe !== undefined;
  });

  // The server can still read; it only fails to write its list of failed logins.
  test("on a full disk: logins get the right result, even when a password policy would write", async ({
    skip,
  }) => {
    if (!disk.possible) skip();
    await using full = await smallDisk(2 * 1024 ** 2);
    if (full === undefined) throw new Error("no disk");
    await using server = await startSlapd(full.path);
    await server.hold([BOB, CAROL]);
    await strict(server, CAROL.name);
    const gate = await startGate(server.port);
    full.fill();
    await expect(addWithoutEnd(server)).rejects.toThrow("0x50");
    expect((await logIn(gate, "bob", "banana")).status).toBe(200);
    for (const password of ["wrong", "of the next store"]) {
      expect((await logIn(gate, "bob", password)).status).toBe(401);
    }
    expect((await logIn(gate, "nobody", "x")).status).toBe(401);
    expect((await logIn(gate, "carol", "wrong")).status).toBe(401);
    expect((await logIn(gate, "carol", "cherry")).status).toBe(200);
    // After a restart, it may not even come up.
    await server.kill();
    expect((await logIn(gate, "bob", "banana")).status).toBe(503);
    full.free();
    await server.start();
    await until(async () => (await logIn(gate, "bob", "banana")).status === 200, 20_000);
    await expectNoSecrets(gate);
  });
});

/** Adds entries until the server fails. */
function addWithoutEnd(server: SlapdServer): Promise<never> {
  return server.admin(async (client) => {
    for (let entry = 0; ; entry += 1) {
      const ou = `more${entry}`;
      const description = "x".repeat(2_000);
      await client.add(`ou=${ou},dc=example,dc=com`, {
        objectClass: ["organizationalUnit"],
        ou,
        description,
      });
    }
  });
}
