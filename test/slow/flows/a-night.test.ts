/**
 * The events of a night in one run, under load: a route, a user and the certificate change, the key is rotated twice,
 * each file is broken once and repaired, and finally the process drains. No request may fail, no valid token may be
 * refused, every change takes effect within two seconds, and every broken file is reported with its path.
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

/** Two seconds are documented, and met on an idle machine; here other tests run in parallel. */
const SOON_MS = 8_000;
const PER_SECOND = 200;

/** Sends requests at a steady rate with all tokens in turn, and records everything other than 200. */
function load(gate: Sallyport, tokens: string[]) {
  // Certificates are not verified, because one of them is for another name.
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

it("passes without a failed request", async () => {
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
  const errorsWith = (message: string) =>
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

  // The certificate, with a swap of `..data`. The load keeps its connections, and opens new ones with the old authority.
  const before = await served();
  await mountFiles(certificates, { "tls.crt": client.cert, "tls.key": client.key });
  await until(async () => (await served()) !== before, SOON_MS);
  await mountFiles(certificates, { "tls.crt": server.cert, "tls.key": server.key });
  await until(async () => (await served()) === before, SOON_MS);

  // The key, twice, published first each time.
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

  // Each file is broken once, reported with its path, and repaired.
  const broken: [string, string, string, string][] = [
    [config, "server: [", changed, "the configuration was not reloaded"],
    [users, "users: { alice: { password: secret } }", both, "users file"],
    [join(keyPlace, "broken.pem"), "-----BEGIN PRIVATE KEY-----", "", "the signing keys cannot"],
  ];
  for (const [file, wrong, right, message] of broken) {
    const count = errorsWith(message).length;
    await writeFile(file, wrong, { mode: 0o600 });
    await until(() => errorsWith(message).length > count, SOON_MS);
    expect(JSON.stringify(errorsWith(message).at(-1))).toContain(file);
    await (right === "" ? rm(file) : writeFile(file, right));
  }
  const count = errorsWith("the configuration was not reloaded").length;
  await mountFiles(certificates, { "tls.crt": "nothing", "tls.key": server.key });
  await until(() => errorsWith("the configuration was not reloaded").length > count, SOON_MS);
  await mountFiles(certificates, { "tls.crt": server.cert, "tls.key": server.key });
  const successful = async (): Promise<boolean> =>
    (await ask({ port: gate.adminPort }, "/metrics")).body.includes(
      "sallyport_config_last_reload_successful 1",
    );
  await until(successful, 3 * SOON_MS);

  const answered = traffic.answered();
  await until(() => traffic.answered() > answered + 100);
  expect(traffic.failures).toEqual([]);

  // The end: the load continues until readiness fails, like that of a load balancer.
  const exit = gate.stop();
  await until(async () => (await ask({ port: gate.adminPort }, "/readyz")).status === 503);
  await traffic.end();
  expect(await exit).toBe(0);
  expect(traffic.failures).toEqual([]);
  expect(traffic.answered()).toBeGreaterThan(300);
}, 120_000);
