import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startApp } from "../../src/app/app.ts";
import { type InForce, takeSnapshot } from "../../src/config/snapshot.ts";
import { keptLines } from "../observe/kept-lines.ts";
import { ask, askLogin } from "../support/ask.ts";
import { type EchoBackend, startEchoBackend } from "../support/echo-backend.ts";
import { ALICE, cheapHash } from "../support/sallyport.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

let backend: EchoBackend;
beforeAll(async () => {
  backend = await startEchoBackend();
});
afterAll(() => backend.close());

const OPEN = { name: "open", path: "/", auth: "none", upstream: "app" };
const CLOSED = { name: "closed", path: "/closed/", upstream: "app" };
const sound = (workers: number) => ({
  server: { listen: "127.0.0.1:0", tls: "off", workers, drain: { delay: "0s", timeout: "1s" } },
  admin: "off",
  users: [{ kind: "file", path: "users.yaml" }],
  routes: [OPEN],
  upstreams: { app: { targets: [backend.url] } },
});

/** Faults, each in a different part of Sallyport. */
const FAULTS: Readonly<Record<string, () => object>> = {
  "users file": () => ({ users: [{ kind: "file", path: "gone.yaml" }] }),
  "directory of keys": () => ({ tokens: { keys: "gone" } }),
  certificate: () => ({ server: { tls: { certFile: "gone.crt", keyFile: "gone.key" } } }),
  "authority of a backend": () => ({
    upstreams: { app: { targets: ["https://localhost:1"], tls: { caFile: "gone.pem" } } },
  }),
  "set of trusted keys": () => ({
    tokens: {
      trusted: [
        {
          issuer: "https://a.example",
          audience: "a",
          algorithms: ["ES256"],
          jwks: { file: "gone" },
        },
      ],
    },
  }),
};

/** Starts without the check of all files that `serve` makes first, so that each part finds its own faults. */
async function start(workers: number) {
  const place = await temporaryDirectory();
  const users = { alice: { password: cheapHash(ALICE.password) } };
  await place.write("users.yaml", JSON.stringify({ users }));
  const file = await place.write("config.yaml", JSON.stringify(sound(workers)));
  const read = (inForce?: InForce) => takeSnapshot({ file, env: {}, overrides: {} }, inForce);
  const { sink, lines } = keptLines();
  const app = await startApp({ snapshot: await read(), version: "0.0.0", sink, read });
  return {
    write: (config: object) => place.write("config.yaml", JSON.stringify(config)),
    reload: app.reload,
    told: (message: string) => lines.some((line) => line.includes(message)),
    async state() {
      const [closed, login] = await Promise.all([ask(app, "/closed/x"), askLogin(app, ALICE)]);
      return { closed: closed.status, login: login.status };
    },
    async [Symbol.asyncDispose]() {
      await app.stop();
      await place.close();
    },
  };
}

describe.each([1, 2])("with %i workers, a reload", (workers) => {
  it("that fails late changes nothing, wherever it fails", async () => {
    await using gate = await start(workers);
    const changed = { ...sound(workers), routes: [OPEN, CLOSED] };
    for (const [name, fault] of Object.entries(FAULTS)) {
      await gate.write({ ...changed, ...fault() });
      expect({ name, result: await gate.reload("a test") }).toMatchObject({
        result: { successful: false },
      });
      expect({ name, ...(await gate.state()) }).toEqual({ name, closed: 200, login: 200 });
    }
    expect(gate.told("the configuration was reloaded")).toBe(false);
    await gate.write(changed);
    expect(await gate.reload("a test")).toMatchObject({
      successful: true,
      changed: ["routes.closed"],
    });
    expect(await gate.state()).toEqual({ closed: 401, login: 200 });
  }, 60_000);
});
