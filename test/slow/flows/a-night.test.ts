/**
 * What a night brings, in one run, under load: a route, a user and the certificate change, the key is rotated twice, each
 * file is broken once and mended, and at last the process drains. Nobody may notice: no request fails, no valid token is
 * refused, every change is in force within two seconds, every break is told with its place.
 */
import { readFile, rm, writeFile } from "node:fs/promises";
import { Agent } from "node:https";
import { join } from "node:path";
import { connect } from "node:tls";
import { expect, it } from "vitest";
import { keysCommand } from "../../cli/command.ts";
import { ask, askLogin } from "../../support/ask.ts";
import { testCertificates } from "../../support/certificates.ts";
import { startEchoBackend } from "../../support/echo-backend.ts";
import { mountFiles } from "../../support/edits.ts";
import { ALICE, cheapHash, type Sallyport, startSallyport } from "../../support/sallyport.ts";
import { temporaryDirectory } from "../../support/temporary-directory.ts";
import { until } from "../../support/until.ts";

/** Two seconds are promised, and kept by a machine that does nothing else; here other tests run beside this one. */
const SOON_MS = 8_000;
const PER_SECOND = 200;

/** Asks at a steady rate with the newest token, and counts what was not a 200. */
function load(gate: Sallyport, tokens: string[]) {
  // Not who it is but that it answers: one of the certificates is for another name.
  const agent = new Agent({ keepAlive: true, maxSockets: 64, rejectUnauthorized: false });
  const failures: string[] = [];
  let answered = 0;
  const underWay = new Set<Promise<void>>();
  const one = async (): Promise<void> => {
    const token = tokens[answered % tokens.length] ?? "";
    try {
      const { status } = await ask(gate, "/load", { token, agent });
      if (status === 200) answered += 1;
      else failures.push(String(status));
    } catch (error) {
      failures.push(String(error));
    }
  };
  const timer = setInterval(() => {
    if (underWay.size > 100) return;
    const asked: Promise<void> = one().finally(() => underWay.delete(asked));
    underWay.add(asked);
  }, 1000 / PER_SECOND);
  return {
    failures,
    answered: () => answered,
    async end() {
      clearInterval(timer);
      await Promise.all(underWay);
      agent.destroy();
    },
  };
}

it("goes by without one failed request", async () => {
  await using backend = await startEchoBackend();
  await using mounts = await temporaryDirectory();
  const { server, client } = await testCertificates();
  const certificates = join(mounts.path, "tls");
  const keyPlace = join(mounts.path, "keys");
  const users = join(mounts.path, "users.yaml");
  const alice = { password: cheapHash(ALICE.password), groups: ["sales"] };
  await mountFiles(certificates, { "tls.crt": server.cert, "tls.key": server.key });
  await keysCommand("generate", "-d", keyPlace, "--name", "one");
  await writeFile(users, JSON.stringify({ users: { alice } }));
  await using gate = await startSallyport({
    target: backend.url,
    config: {
      server: {
        tls: { certFile: join(certificates, "tls.crt"), keyFile: join(certificates, "tls.key") },
        drain: { delay: "2s", timeout: "5s" },
      },
      users: [{ kind: "file", path: users }],
      tokens: { keys: keyPlace, lifetime: "1h" },
    },
  });
  const tokens = [gate.token];
  const traffic = load(gate, tokens);
  const config = join(gate.directory, "config.yaml");
  const original = await readFile(config, "utf8");
  const told = (message: string) =>
    gate.log().filter(({ level, msg }) => level === "error" && String(msg).includes(message));
  const served = async (): Promise<string> => {
    const socket = connect({ host: "127.0.0.1", port: gate.port, rejectUnauthorized: false });
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    socket.once("error", reject);
    socket.once("secureConnect", () => resolve(String(socket.getPeerCertificate().subject.CN)));
    return promise.finally(() => socket.destroy());
  };
  await until(() => traffic.answered() > 50);

  // A route.
  const routes = JSON.parse(original) as { routes: object[] };
  routes.routes.push({
    name: "closed",
    path: "/closed/",
    upstream: "app",
    require: { groups: { any: ["nobody"] } },
  });
  const changed = JSON.stringify(routes, undefined, 2);
  await writeFile(config, changed);
  const status = async (path: string) => (await ask(gate, path, { token: gate.token })).status;
  await until(async () => (await status("/closed/x")) === 403, SOON_MS);

  // A user.
  const bob = { username: "bob", password: "bob's own password" };
  const both = JSON.stringify({ users: { alice, bob: { password: cheapHash(bob.password) } } });
  await writeFile(users, both);
  await until(async () => (await askLogin(gate, bob)).status === 200, SOON_MS);

  // The certificate, by a swap of `..data`; the load keeps its connections, and makes new ones with the old authority.
  const before = await served();
  await mountFiles(certificates, { "tls.crt": client.cert, "tls.key": client.key });
  await until(async () => (await served()) !== before, SOON_MS);
  await mountFiles(certificates, { "tls.crt": server.cert, "tls.key": server.key });
  await until(async () => (await served()) === before, SOON_MS);

  // The key, twice: each published first.
  for (const name of ["two", "three"]) {
    await keysCommand(
      "rotate",
      "-d",
      keyPlace,
      "--name",
      name,
      "--lifetime",
      "1h",
      "--publish-for",
      "1s",
    );
    const kid = (token: string): unknown =>
      (
        JSON.parse(Buffer.from(token.split(".")[0] ?? "", "base64url").toString()) as {
          kid: unknown;
        }
      ).kid;
    const last = kid(tokens.at(-1) ?? "");
    await until(async () => {
      const token = await gate.login(ALICE.username, ALICE.password);
      const isNew = kid(token) !== last;
      if (isNew) tokens.push(token);
      return isNew;
    }, SOON_MS);
  }

  // Each file broken once, told with its place, and mended.
  const broken: [string, string, string, string][] = [
    [config, "server: [", changed, "the configuration was not reloaded"],
    [users, "users: { alice: { password: secret } }", both, "users file"],
    [join(keyPlace, "broken.pem"), "-----BEGIN PRIVATE KEY-----", "", "the signing keys cannot"],
  ];
  for (const [file, wrong, right, message] of broken) {
    const count = told(message).length;
    await writeFile(file, wrong, { mode: 0o600 });
    await until(() => told(message).length > count, SOON_MS);
    expect(JSON.stringify(told(message).at(-1))).toContain(file);
    await (right === "" ? rm(file) : writeFile(file, right));
  }
  const count = told("the configuration was not reloaded").length;
  await mountFiles(certificates, { "tls.crt": "nothing", "tls.key": server.key });
  await until(() => told("the configuration was not reloaded").length > count, SOON_MS);
  await mountFiles(certificates, { "tls.crt": server.cert, "tls.key": server.key });
  const successful = async (): Promise<boolean> =>
    (await ask({ port: gate.adminPort }, "/metrics")).body.includes(
      "sallyport_config_last_reload_successful 1",
    );
  await until(successful, 3 * SOON_MS);

  const answered = traffic.answered();
  await until(() => traffic.answered() > answered + 100);
  expect(traffic.failures).toEqual([]);

  // The end: the load goes on until readiness has failed, as a load balancer has it.
  const exit = gate.stop();
  await until(async () => (await ask({ port: gate.adminPort }, "/readyz")).status === 503);
  await traffic.end();
  expect(await exit).toBe(0);
  expect(traffic.failures).toEqual([]);
  expect(traffic.answered()).toBeGreaterThan(300);
}, 120_000);
