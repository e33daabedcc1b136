import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { command, keysCommand } from "../cli/command.ts";
import { ask } from "../support/ask.ts";
import { testCertificates } from "../support/certificates.ts";
import { freePort } from "../support/dead-ends.ts";
import { type EchoBackend, startEchoBackend } from "../support/echo-backend.ts";
import { installed } from "../support/program.ts";
import { ALICE, type Sallyport, startSallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { until } from "../support/until.ts";
import { inMemory, REDIS_PROGRAMS, type RedisNode, startRedisNode } from "./redis-node.ts";
import { logInAt } from "./replicas.ts";

const PASSWORD = "of-the-test";
/** The ACL rules of docs/scale.md. */
const RIGHTS = "~{sallyport:}* +@read +@write +@scripting +@connection +time +info";

interface Place {
  /** `shared` without `kind`. */
  readonly shared: object;
  /** Fails over to another server; undefined if there is only one. */
  readonly failOver?: () => Promise<void>;
  /** Stops replication to that other server. */
  readonly isolate?: () => Promise<void>;
  /** The revocations on the other server. */
  readonly revoked?: () => Promise<unknown>;
  /** What the doctor says about faulty settings. */
  readonly ill: readonly { readonly change: object; readonly says: string }[];
}

type Start = (program: string, stack: AsyncDisposableStack) => Promise<Place>;

/** Only TLS, and a user with exactly the documented permissions. */
const startWithTls: Start = async (program, stack) => {
  const { ca, server } = await testCertificates();
  const secure = ["--tls-cert-file", "tls.crt", "--tls-key-file", "tls.key"];
  const user = ["--user", "sallyport", "on", `>${PASSWORD}`, ...RIGHTS.split(" ")];
  const tls = { host: "127.0.0.1", tls: { ca } };
  const node = stack.use(
    await startRedisNode({
      program,
      client: { username: "sallyport", password: PASSWORD, ...tls },
      args: (port, directory) => [
        ...[...inMemory(0, directory), "--tls-port", String(port), ...secure],
        ...["--tls-ca-cert-file", "ca.crt", "--tls-auth-clients", "no"],
        ...["--user", "default", "off", ...user],
      ],
      files: { "tls.crt": server.cert, "tls.key": server.key, "ca.crt": ca },
    }),
  );
  const url = `rediss://sallyport@localhost:${node.port}/0`;
  return {
    shared: { url, password: PASSWORD, caFile: "ca.crt" },
    ill: [
      { change: { password: "hunter22" }, says: "cannot be used: WRONGPASS" },
      { change: { caFile: undefined }, says: "cannot be used: SELF_SIGNED_CERT_IN_CHAIN" },
      { change: { prefix: "elsewhere:" }, says: "cannot be used: NOPERM" },
      {
        change: { url: url.replace("rediss:", "redis:") },
        says: "cannot be used: ",
      },
    ],
  };
};

/** A primary with a replica, and two sentinel addresses, one of them unreachable. */
const startSentinel: Start = async (program, stack) => {
  const login = ["--requirepass", PASSWORD, "--masterauth", PASSWORD];
  const client = { password: PASSWORD };
  const start = (...more: readonly string[]) =>
    startRedisNode({
      program,
      client,
      args: (port, directory) => [...inMemory(port, directory), ...login, ...more],
    });
  const primary = stack.use(await start());
  const replica = stack.use(await start("--replicaof", `127.0.0.1 ${primary.port}`));
  await until(async () => String(await replica.command("INFO")).includes("master_link_status:up"));
  const port = await freePort();
  const settings = [
    ...[`port ${port}`, "bind 127.0.0.1", "requirepass of-the-sentinel"],
    `sentinel monitor sallyport 127.0.0.1 ${primary.port} 1`,
    `sentinel auth-pass sallyport ${PASSWORD}`,
    ...[
      "sentinel down-after-milliseconds sallyport 1000",
      "sentinel failover-timeout sallyport 5000",
    ],
  ];
  const sentinel = stack.use(
    await startRedisNode({
      program,
      port,
      client: { password: "of-the-sentinel" },
      args: (_, directory) => [join(directory, "sentinel.conf"), "--sentinel", "--dir", directory],
      files: { "sentinel.conf": `${settings.join("\n")}\n` },
    }),
  );
  const words = ["replicas", "sallyport"];
  await until(
    async () => JSON.stringify(await sentinel.command("SENTINEL", ...words)).includes('"ok"'),
    30_000,
  );
  return {
    shared: {
      url: `redis://127.0.0.1:${await freePort()}`,
      password: PASSWORD,
      nodes: [`127.0.0.1:${sentinel.port}`],
      sentinel: { name: "sallyport", password: "of-the-sentinel" },
    },
    async isolate() {
      await replica.command("CONFIG", "SET", "masterauth", "hunter22");
      await primary.command("CLIENT", "KILL", "TYPE", "replica");
    },
    failOver: () => primary.kill(),
    revoked: () => replica.command("ZRANGE", "{sallyport:}revocations", "0", "-1"),
    ill: [
      {
        change: { sentinel: { name: "another", password: "of-the-sentinel" } },
        says: "the sentinel knows no primary of this name",
      },
      {
        change: {
          url: `redis://127.0.0.1:${sentinel.port}`,
          nodes: [],
          sentinel: { name: "sallyport", password: "hunter22" },
        },
        says: "cannot be used: WRONGPASS",
      },
      {
        change: { password: "hunter22", url: `redis://127.0.0.1:${sentinel.port}` },
        says: "WRONGPASS",
      },
    ],
  };
};

/** Three primaries, and a replica of the one with our keys. */
const startCluster: Start = async (program, stack) => {
  const cli = installed(program.replace("server", "cli")) ?? "redis-cli";
  const run = promisify(execFile);
  const login = ["--requirepass", PASSWORD, "--masterauth", PASSWORD];
  const start = () =>
    startRedisNode({
      program,
      client: { password: PASSWORD },
      args: (port, directory) => [
        ...[...inMemory(port, directory), ...login, "--cluster-enabled", "yes"],
        ...["--cluster-node-timeout", "2000", "--cluster-port", String(clusterPorts.shift())],
      ],
    });
  const clusterPorts = [await freePort(), await freePort(), await freePort(), await freePort()];
  const nodes: RedisNode[] = [];
  for (let count = 0; count < 4; count += 1) nodes.push(stack.use(await start()));
  const [first, second, third, fourth] = nodes as [RedisNode, RedisNode, RedisNode, RedisNode];
  const cluster = (...words: readonly string[]) =>
    run(cli, ["--no-auth-warning", "-a", PASSWORD, "--cluster", ...words], { timeout: 60_000 });
  const addresses = [first, second, third].map(({ port }) => `127.0.0.1:${port}`);
  await cluster("create", ...addresses, "--cluster-yes");
  const slot = Number(await first.command("CLUSTER", "KEYSLOT", "{sallyport:}probe"));
  const owner = [first, second, third][Math.floor(slot / (16_384 / 3))] ?? first;
  const id = String(await owner.command("CLUSTER", "MYID"));
  await until(async () => (await clusterState(fourth, "state")) !== undefined);
  await cluster(
    ...["add-node", `127.0.0.1:${fourth.port}`, `127.0.0.1:${owner.port}`],
    ...["--cluster-slave", "--cluster-master-id", id],
  );
  const ready = async (): Promise<boolean> =>
    String(await fourth.command("INFO", "replication")).includes("master_link_status:up");
  await until(ready, 30_000);
  const another = [first, second, third].find((node) => node !== owner) ?? first;
  const url = `redis://127.0.0.1:${another.port}`;
  return {
    shared: { url, password: PASSWORD, cluster: true, nodes: [`127.0.0.1:${fourth.port}`] },
    failOver: async () => void (await fourth.command("CLUSTER", "FAILOVER")),
    ill: [
      {
        change: { cluster: false, nodes: [] },
        says: "MOVED, it belongs to a cluster: set shared.cluster",
      },
      { change: { url: `redis://127.0.0.1:${await freePort()}`, nodes: [] }, says: "ECONNREFUSED" },
    ],
  };
};

async function clusterState(node: RedisNode, field: string): Promise<string | undefined> {
  const said = String(await node.command("CLUSTER", "INFO"));
  return new RegExp(`cluster_${field}:(\\w+)`).exec(said)?.[1];
}

const PLACES: Readonly<Record<string, Start>> = {
  "TLS and an ACL user": startWithTls,
  sentinels: startSentinel,
  "a cluster": startCluster,
};

const SUBJECTS = REDIS_PROGRAMS.flatMap((program) =>
  Object.entries(PLACES).map(([name, start]) => ({ program, name, start })),
);

describe.each(SUBJECTS)("two replicas that share through $name of $program", (subject) => {
  const stack = new AsyncDisposableStack();
  let place: Place;
  let backend: EchoBackend;
  let gates: readonly [Sallyport, Sallyport];

  beforeAll(async () => {
    place = await subject.start(subject.program, stack);
    backend = stack.use(await startEchoBackend());
    const { ca } = await testCertificates();
    const directory = stack.adopt(await temporaryDirectory(), (each) => each.close());
    const keys = join(directory.path, "keys");
    await keysCommand("generate", "-d", keys);
    const start = async () =>
      stack.use(
        await startSallyport({
          target: backend.url,
          config: {
            server: { tls: "off", trustedProxies: ["127.0.0.1/32"] },
            tokens: { keys, revocation: { logout: true } },
            shared: { kind: "redis", ...place.shared },
          },
          files: { "ca.crt": ca },
        }),
      );
    gates = [await start(), await start()];
  }, 120_000);
  afterAll(() => stack.disposeAsync());

  const allUp = async (): Promise<boolean> => {
    const pages = await Promise.all(gates.map((gate) => scrape(gate)));
    return pages.every((page) => page.value("sallyport_shared_state_up") === 1);
  };

  /** Returns the milliseconds from a logout at one replica until the other refuses the token. */
  async function revocationMs(): Promise<number> {
    const [one, other] = gates;
    const { token } = await logInAt(one, ALICE.username);
    expect((await ask({ port: other.port }, "/x", { token })).status).toBe(200);
    const began = performance.now();
    expect((await ask({ port: one.port }, "/api/logout", { method: "POST", token })).status).toBe(
      200,
    );
    await until(async () => (await ask({ port: other.port }, "/x", { token })).status === 401);
    return performance.now() - began;
  }

  test("a token that is logged out at one is refused by the other, even after a failover", async () => {
    await until(allUp);
    expect(await revocationMs()).toBeLessThan(1_000);
    if (place.failOver === undefined) return;
    const { token: ended } = await logInAt(gates[0], ALICE.username);
    await place.isolate?.();
    const { token: lost } = await logInAt(gates[0], ALICE.username);
    expect(
      (await ask({ port: gates[0].port }, "/api/logout", { method: "POST", token: lost })).status,
    ).toBe(200);
    await place.failOver();
    expect(
      (await ask({ port: gates[0].port }, "/api/logout", { method: "POST", token: ended })).status,
    ).toBe(200);
    await until(
      async () => (await ask({ port: gates[1].port }, "/x", { token: ended })).status === 401,
      60_000,
    );
    await until(allUp, 60_000);
    expect(await revocationMs()).toBeLessThan(1_000);
    const { revoked } = place;
    if (revoked === undefined) return;
    const { jti } = JSON.parse(Buffer.from(lost.split(".")[1] ?? "", "base64url").toString());
    await until(async () => JSON.stringify(await revoked()).includes(String(jti)));
  }, 120_000);

  test("the doctor reports its state, and its faults", async () => {
    const { directory } = gates[0];
    const doctor = async (change: object): Promise<string> => {
      const shared = { kind: "redis", ...place.shared, ...change };
      const file = join(directory, "changed.yaml");
      const upstreams = { app: { targets: [backend.url] } };
      const users = [{ kind: "file", path: "users.yaml" }];
      await writeFile(file, JSON.stringify({ server: { tls: "off" }, shared, users, upstreams }));
      const { out, err } = await command(["doctor", "--config", file]);
      expect(out + err).not.toMatch(/hunter22|of-the-(?:test|sentinel)/);
      return out;
    };
    expect(await doctor({})).toMatch(
      /redis: (?:Redis|Valkey) \d[\d.]*(?: at \S+)? answers in \d+ ms/,
    );
    for (const { change, says } of place.ill) {
      const report = await doctor(change);
      expect(report.slice(report.indexOf("state server"))).toContain(says);
    }
  }, 60_000);
});
