/**
 * A second real identity provider, zitadel's, from the Go module proxy: users log in with a password form, robots with
 * the client credentials grant. Covers discovery, key rotation under load, introspection, an outage, and restarts of
 * both sides. The program is in go-oidc/.
 */
import { generateKeyPairSync } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { startEchoBackend, type EchoBackend } from "../support/echo-backend.ts";
import { echoedBy } from "../support/echoed.ts";
import { replaceFile } from "../support/edits.ts";
import { buildGo, GO_BUILD_MS } from "../support/go-program.ts";
import { type RunningProgram, startProgram } from "../support/program.ts";
import { startSallyport, type Sallyport } from "../support/sallyport.ts";
import { temporaryDirectory, type TemporaryDirectory } from "../support/temporary-directory.ts";
import { until } from "../support/until.ts";

const SOURCES = join(import.meta.dirname, "go-oidc");
const CALLBACK = "http://localhost:9999/auth/callback";
const SECRET = "verysecret";

let directory: TemporaryDirectory;
let backend: EchoBackend;
let provider: RunningProgram | undefined;
let issuer = "";
/** Why nothing can be tested, if so. */
let reason: string | undefined;

beforeAll(async () => {
  directory = await temporaryDirectory();
  backend = await startEchoBackend();
  reason = await buildGo(SOURCES, directory.path);
  if (reason !== undefined) return;
  await mkdir(join(directory.path, "keys"));
  await addKey();
  await startProvider("127.0.0.1:0");
}, GO_BUILD_MS);
afterAll(async () => {
  await provider?.[Symbol.asyncDispose]();
  await Promise.all([backend.close(), directory.close()]);
});

let keys = 0;

/**
 * Adds a key, whose file name is its kid. The last one signs at once, although no client has seen its public key yet.
 * The provider reads the files for each token, so the file appears whole, and no name is ever used for a second key.
 */
async function addKey(): Promise<void> {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const text = privateKey.export({ format: "pem", type: "pkcs8" });
  keys += 1;
  await replaceFile({ directory: join(directory.path, "keys") }, `${keys}.pem`, text);
}

async function startProvider(address: string): Promise<void> {
  const program = join(directory.path, "program");
  const started = startProgram(program, [address, join(directory.path, "keys"), CALLBACK]);
  provider = started;
  await until(() => /^http\S+\n/.test(started.output()), 20_000);
  issuer = started.output().trim();
}

async function stopProvider(): Promise<void> {
  await provider?.[Symbol.asyncDispose]();
  provider = undefined;
}

function start(): Promise<Sallyport> {
  const introspection = {
    url: `${issuer}/oauth/introspect`,
    clientId: "web",
    clientSecret: "secret",
    cache: "1s",
  };
  return startSallyport({
    target: backend.url,
    config: {
      tokens: {
        trusted: [
          {
            issuer,
            audience: ["orders", "web"],
            algorithms: ["RS256"],
            discovery: true,
            jwks: { cacheFile: join(directory.path, "keys.json") },
          },
          { issuer: "opaque", introspection },
        ],
      },
    },
  });
}

interface TokenAnswer {
  readonly access_token?: string;
}

async function granted(form: Record<string, string>, client: string): Promise<string> {
  const answer = await fetch(`${issuer}/oauth/token`, {
    method: "POST",
    headers: { authorization: `Basic ${Buffer.from(client).toString("base64")}` },
    body: new URLSearchParams(form),
  });
  const body = (await answer.json()) as TokenAnswer;
  if (body.access_token === undefined) throw new Error(JSON.stringify(body));
  return body.access_token;
}

const robotToken = (client: "robot" | "opaque"): Promise<string> =>
  granted({ grant_type: "client_credentials", scope: "openid" }, `${client}:${SECRET}`);

/** Returns the target of a redirect. */
async function sentTo(url: string, form?: Record<string, string>): Promise<URL> {
  const question = form === undefined ? {} : { method: "POST", body: new URLSearchParams(form) };
  const answer = await fetch(url, { redirect: "manual", ...question });
  const location = answer.headers.get("location");
  if (location === null) throw new Error(`${url}: ${answer.status} ${await answer.text()}`);
  return new URL(location, url);
}

/** Gets a token the way a person does: with the login form, a password, and the authorization code. */
async function userToken(): Promise<string> {
  const client = { client_id: "web", redirect_uri: CALLBACK };
  const question = { ...client, response_type: "code", scope: "openid email", state: "s" };
  const form = await sentTo(`${issuer}/auth?${new URLSearchParams(question).toString()}`);
  const id = form.searchParams.get("authRequestID") ?? "";
  const username = `test-user@${new URL(issuer).hostname}`;
  const entered = await sentTo(`${issuer}/login/username`, {
    id,
    username,
    password: "verysecure",
  });
  const back = await sentTo(entered.href);
  expect(back.href).toContain(CALLBACK);
  const code = back.searchParams.get("code") ?? "";
  const grant = { grant_type: "authorization_code", code, redirect_uri: CALLBACK };
  return granted(grant, "web:secret");
}

describe("zitadel's provider", () => {
  it("has tokens of its users and robots accepted, with keys from discovery", async ({ skip }) => {
    if (reason !== undefined) return skip(reason);
    await using gate = await start();
    for (const [token, subject] of [
      [await userToken(), "id1"],
      [await robotToken("robot"), "robot"],
    ] as const) {
      const answer = await ask(gate, "/x", { token });
      expect(answer.status).toBe(200);
      expect(echoedBy(answer).header("x-auth-subject")).toBe(subject);
      expect(echoedBy(answer).header("x-auth-issuer")).toBe(issuer);
      expect((await ask(gate, "/x", { token: `${token}x` })).status).toBe(401);
    }
  }, 30_000);

  it("rotates its keys under load without a 401", async ({ skip }) => {
    if (reason !== undefined) return skip(reason);
    await using gate = await start();
    const statuses: number[] = [];
    const over = new AbortController();
    const load = Array.from({ length: 4 }, async () => {
      while (!over.signal.aborted) {
        const token = await robotToken("robot");
        statuses.push((await ask(gate, "/x", { token })).status);
      }
    });
    for (let added = 0; added < 2; added += 1) {
      // Longer than the minimum interval between fetches for an unknown kid.
      await sleep(8_000);
      await addKey();
    }
    await sleep(2_000);
    over.abort();
    await Promise.all(load);
    expect(statuses.length).toBeGreaterThan(50);
    expect(new Set(statuses)).toEqual(new Set([200]));
  }, 60_000);

  it("introspects opaque tokens", async ({ skip }) => {
    if (reason !== undefined) return skip(reason);
    await using gate = await start();
    const token = await robotToken("opaque");
    expect(token.split(".")).not.toHaveLength(3);
    const answer = await ask(gate, "/x", { token });
    expect(answer.status).toBe(200);
    expect(echoedBy(answer).header("x-auth-subject")).toBe("id1");
    expect((await ask(gate, "/x", { token: `${token.slice(0, -4)}AAAA` })).status).toBe(401);
  }, 30_000);

  it("while down, has its JWTs accepted, even after a restart; opaque tokens get 503", async ({
    skip,
  }) => {
    if (reason !== undefined) return skip(reason);
    const address = new URL(issuer).host;
    const tokens = await Promise.all(Array.from({ length: 40 }, () => robotToken("robot")));
    const opaque = await robotToken("opaque");
    const statusesOf = async (gate: Sallyport, these: readonly string[]): Promise<Set<number>> =>
      new Set(
        await Promise.all(these.map(async (token) => (await ask(gate, "/x", { token })).status)),
      );
    {
      await using gate = await start();
      expect(await statusesOf(gate, tokens.slice(0, 5))).toEqual(new Set([200]));
      await until(() => readFile(join(directory.path, "keys.json")).then(Boolean, () => false));
      await stopProvider();
      expect(await statusesOf(gate, tokens.slice(5, 20))).toEqual(new Set([200]));
    }
    await using gate = await start();
    expect(await statusesOf(gate, tokens)).toEqual(new Set([200]));
    expect(await statusesOf(gate, [opaque])).toEqual(new Set([503]));
    await startProvider(address);
    // It has lost its tokens, so introspection rejects them.
    await until(async () => (await statusesOf(gate, [opaque])).has(401), 20_000);
    const again = await robotToken("opaque");
    expect(await statusesOf(gate, [again, await robotToken("robot")])).toEqual(new Set([200]));
  }, 90_000);
});
