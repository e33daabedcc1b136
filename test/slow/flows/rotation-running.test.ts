import { readFile, rm, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createLocalJWKSet, jwtVerify } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeKey } from "../../../src/tokens/keys/key-making.ts";
import { keysCommand } from "../../cli/command.ts";
import { ask, askLogin } from "../../support/ask.ts";
import { type EchoBackend, startEchoBackend } from "../../support/echo-backend.ts";
import { ALICE, type Sallyport, startSallyport } from "../../support/sallyport.ts";
import { scrape } from "../../support/scrape.ts";
import { isSoonInForce } from "../../support/soon.ts";
import { temporaryDirectory } from "../../support/temporary-directory.ts";
import { until } from "../../support/until.ts";

const KEY_SET = "/.well-known/jwks.json";

let backend: EchoBackend;
beforeAll(async () => {
  backend = await startEchoBackend();
});
afterAll(() => backend.close());

describe("a running Sallyport", () => {
  const stack = new AsyncDisposableStack();
  let place: string;
  let gate: Sallyport;
  beforeAll(async () => {
    place = join(stack.use(await temporaryDirectory()).path, "keys");
    await keysCommand("generate", "-d", place, "--name", "one");
    await keysCommand("rotate", "-d", place, "--name", "two", "--lifetime", "5h");
    const secret = JSON.stringify(makeKey("HS256").export({ format: "jwk" }));
    await writeFile(join(place, "secret.jwk"), secret, { mode: 0o600 });
    const config = { tokens: { keys: place } };
    gate = stack.use(await startSallyport({ target: backend.url, config }));
  });
  afterAll(() => stack.disposeAsync());

  it("shows when the signing key was created and when it expires", async () => {
    const jwk: unknown = JSON.parse(await readFile(join(place, "one.jwk"), "utf8"));
    const page = await scrape(gate);
    expect(jwk).toMatchObject({
      iat: page.value("sallyport_signing_key_made_timestamp_seconds"),
      exp: page.value("sallyport_signing_key_verifies_until_timestamp_seconds"),
    });
  });

  it("serves its public keys on the admin listener, including future ones", async () => {
    const { status, headers, body } = await ask({ port: gate.adminPort }, KEY_SET);
    expect(status).toBe(200);
    expect(headers["content-type"]).toBe("application/json");
    const set = setIn(body);
    expect(set.keys).toHaveLength(2);
    for (const key of set.keys) {
      expect(key).toMatchObject({ kty: "EC", alg: "ES256", use: "sig" });
      for (const secret of ["d", "k", "iat", "nbf", "exp"]) expect(key).not.toHaveProperty(secret);
    }
    const { payload } = await jwtVerify(gate.token, createLocalJWKSet(set));
    expect(payload.sub).toBe(ALICE.username);
    // On the main listener it is an ordinary path that requires a token.
    expect((await ask(gate, KEY_SET)).status).toBe(401);
  });

  it("keeps the old keys while a file is broken, and reports that in /metrics", async () => {
    const successful = async (): Promise<number | undefined> =>
      (await scrape(gate)).value("sallyport_config_last_reload_successful");
    const broken = join(place, "broken");
    const repair = async (): Promise<void> => {
      await rm(broken);
      await until(async () => (await successful()) === 1);
    };
    const soon = await isSoonInForce(
      () => writeFile(broken, "-----BEGIN PRIVATE KEY-----", { mode: 0o600 }),
      async () => (await successful()) === 0,
      repair,
    );
    expect(soon).toBe(true);
    expect((await ask(gate, "/orders", { token: gate.token })).status).toBe(200);
    expect((await askLogin(gate, ALICE)).status).toBe(200);
    const line = gate.log().find(({ msg }) => String(msg).startsWith("the signing keys cannot"));
    expect(JSON.stringify(line)).toContain(broken);
    await repair();
  }, 60_000);
});

describe("two threads", () => {
  const stack = new AsyncDisposableStack();
  let place: string;
  let gate: Sallyport;
  beforeAll(async () => {
    place = join(stack.use(await temporaryDirectory()).path, "keys");
    await keysCommand("generate", "-d", place, "--name", "old");
    const config = { server: { workers: 2 }, tokens: { keys: place, jwks: { publish: true } } };
    gate = stack.use(await startSallyport({ target: backend.url, config }));
  });
  afterAll(() => stack.disposeAsync());

  async function statusesOf(token: string): Promise<number[]> {
    const asked = Array.from({ length: 16 }, () => ask(gate, "/orders", { token }));
    return [...new Set((await Promise.all(asked)).map(({ status }) => status))];
  }
  const all = async (token: string, status: number): Promise<boolean> =>
    (await statusesOf(token)).every((got) => got === status);

  it("publish the keys on the main listener without a token when configured", async () => {
    const { status, headers, body } = await ask(gate, KEY_SET);
    expect(status).toBe(200);
    expect(headers["cache-control"]).toBe("public, max-age=60");
    expect(JSON.parse(body)).toMatchObject({ success: true, id: expect.any(Number) });
    await jwtVerify(gate.token, createLocalJWKSet(setIn(body)));
    const head = await ask(gate, KEY_SET, { method: "HEAD" });
    expect([head.status, head.body]).toEqual([200, ""]);
    const post = await ask(gate, KEY_SET, { method: "POST", body: "" });
    expect([post.status, post.headers.allow]).toEqual([405, "GET, HEAD"]);
    expect((await scrape(gate)).sum("sallyport_http_requests_total", 'route="jwks"')).toBe(3);
  });

  it("both refuse tokens of a removed key, even if cached", async () => {
    await keysCommand("generate", "-d", place, "--name", "new", "--force");
    let newToken = "";
    await until(async () => {
      newToken = await gate.login(ALICE.username, ALICE.password);
      return newToken.split(".")[0] !== gate.token.split(".")[0];
    });
    expect(await all(gate.token, 200)).toBe(true);
    await until(() => all(newToken, 200));
    await unlink(join(place, "old.jwk"));
    await until(() => all(gate.token, 401));
    expect(await all(newToken, 200)).toBe(true);
  });
});

function setIn(body: string): { keys: Record<string, string>[] } {
  return JSON.parse(body) as { keys: Record<string, string>[] };
}
