/**
 * The recipe for an MCP server: client and server of the official SDK, and `oidc-provider`. A person signs in and agrees by
 * script. The client finds all the rest itself.
 */
import { generateKeyPairSync } from "node:crypto";
import { symlink } from "node:fs/promises";
import { createServer, type IncomingMessage } from "node:http";
import { join, resolve } from "node:path";
import { json } from "node:stream/consumers";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import {
  UnauthorizedError,
  type OAuthClientProvider,
} from "@modelcontextprotocol/sdk/client/auth.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type {
  OAuthClientInformationMixed,
  OAuthTokens,
} from "@modelcontextprotocol/sdk/shared/auth.js";
import { errors, Provider } from "oidc-provider";
import { afterAll, beforeAll, expect, it } from "vitest";
import { parse } from "yaml";
import { testCertificates } from "../support/certificates.ts";
import { freePort } from "../support/dead-ends.ts";
import { listening } from "../support/listening.ts";
import { type RunningProgram, startProgram } from "../support/program.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { until } from "../support/until.ts";
import { recipeBlock } from "./recipe.ts";

const CALLBACK = "http://localhost:8765/callback";

const stack = new AsyncDisposableStack();
let gate: Sallyport;
let backend: RunningProgram;
let resource: string;
/** In seconds. */
let tokenLifetime = 600;

/** Creates the authorization server: any name may sign in with any password, and any program may register. */
function providerAt(issuer: string): Provider {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return new Provider(issuer, {
    jwks: { keys: [{ ...privateKey.export({ format: "jwk" }), kty: "EC", alg: "ES256" }] },
    clientDefaults: { id_token_signed_response_alg: "ES256" },
    cookies: { keys: ["of the test"] },
    findAccount: (_context, sub) => ({ accountId: sub, claims: () => ({ sub }) }),
    features: {
      devInteractions: { enabled: true },
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo(_context, audience) {
          if (audience !== resource) throw new errors.InvalidTarget();
          return {
            scope: "mcp:tools mcp:admin",
            audience,
            accessTokenTTL: tokenLifetime,
            accessTokenFormat: "jwt",
            jwt: { sign: { alg: "ES256" } },
          };
        },
      },
    },
  });
}

/** A program may ask for other scopes later than those it has registered with. */
async function withoutScope(request: IncomingMessage): Promise<IncomingMessage> {
  if (request.url !== "/reg") return request;
  const { scope: _, ...body } = Object(await json(request));
  return Object.assign(request, { body });
}

beforeAll(async () => {
  const { ca } = await testCertificates();
  const before = getCACertificates();
  setDefaultCACertificates([...before, ca]);
  stack.defer(() => setDefaultCACertificates(before));
  const front = stack.use(
    await listening(
      createServer((request, response) => {
        withoutScope(request)
          .then((read) => answer(read, response))
          .catch(() => response.destroy());
      }),
    ),
  );
  const answer = providerAt(front.url).callback();
  const [port, target] = [await freePort(), await freePort()];
  resource = `https://localhost:${port}/mcp`;

  const directory = stack.use(await temporaryDirectory());
  const modules = resolve(import.meta.dirname, "../../node_modules");
  await symlink(modules, join(directory.path, "node_modules"));
  const server = recipeBlock("mcp", "// server.mjs").replace("8080", String(target));
  backend = stack.use(
    startProgram(process.execPath, [await directory.write("server.mjs", server)]),
  );
  await until(() => {
    if (backend.exited()) throw new Error(backend.output());
    return fetch(`http://127.0.0.1:${target}`).then(Boolean, () => false);
  });
  const config = recipeBlock("mcp", "# config.yaml")
    .replace("0.0.0.0:8443", `127.0.0.1:${port}`)
    .replaceAll("https://mcp.example.com", `https://localhost:${port}`)
    .replace("https://id.example.com", front.url)
    .replace("127.0.0.1:8080", `127.0.0.1:${target}`);
  gate = stack.use(await startSallyport({ target: "", config: parse(config), withoutToken: true }));
});
afterAll(() => stack.disposeAsync());

/** What a program keeps of one person. */
class Person implements OAuthClientProvider {
  readonly redirectUrl = CALLBACK;
  readonly clientMetadata = {
    client_name: "a program",
    redirect_uris: [CALLBACK],
    token_endpoint_auth_method: "none",
  };
  readonly #name: string;
  readonly #cookies = new Map<string, string>();
  #client: OAuthClientInformationMixed | undefined;
  #tokens: OAuthTokens | undefined;
  #verifier = "";
  /** Where the program has sent the browser, each time. */
  readonly asked: URL[] = [];
  /** What the program was answered, except for the provider's pages: status and path, and the challenge. */
  readonly answers: string[] = [];

  constructor(name: string) {
    this.#name = name;
  }

  clientInformation = () => this.#client;
  saveClientInformation(client: OAuthClientInformationMixed): void {
    this.#client = client;
  }
  tokens = () => this.#tokens;
  saveTokens(tokens: OAuthTokens): void {
    this.#tokens = tokens;
  }
  codeVerifier = () => this.#verifier;
  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier;
  }
  redirectToAuthorization(address: URL): void {
    this.asked.push(address);
  }

  readonly fetch = async (address: string | URL, init?: RequestInit): Promise<Response> => {
    const answer = await fetch(address, init);
    const challenge = answer.headers.get("www-authenticate");
    const said = challenge === null ? [] : [challenge];
    this.answers.push([answer.status, new URL(address).pathname, ...said].join(" "));
    return answer;
  };

  /** Signs in if the provider wants that, and agrees. Returns the code. */
  async agree(): Promise<string> {
    let next = this.asked.at(-1) ?? new URL("about:blank");
    let form: Record<string, string> | undefined;
    for (let page = 0; page < 12; page++) {
      const cookie = [...this.#cookies].map((pair) => pair.join("=")).join("; ");
      const sent = form && { method: "POST", body: new URLSearchParams(form) };
      const answer = await fetch(next, { redirect: "manual", headers: { cookie }, ...sent });
      for (const field of answer.headers.getSetCookie()) {
        const [name = "", value = ""] = field.split(";")[0]?.split("=") ?? [];
        this.#cookies.set(name, value);
      }
      const text = await answer.text();
      const location = answer.headers.get("location");
      form = text.includes('value="login"')
        ? { prompt: "login", login: this.#name, password: "any" }
        : { prompt: "consent" };
      if (location === null) continue;
      next = new URL(location, next);
      form = undefined;
      if (next.href.startsWith(CALLBACK)) return next.searchParams.get("code") ?? next.href;
    }
    throw new Error(`the provider has no end: ${next.href}`);
  }
}

/** Connects, after the person has agreed if they must. */
async function connected(person: Person, address: string) {
  const begin = async () => {
    const client = new Client({ name: "test", version: "1.0.0" });
    const transport = new StreamableHTTPClientTransport(new URL(address), {
      authProvider: person,
      fetch: person.fetch,
    });
    const failed: Error[] = [];
    Object.assign(client, { onerror: (error: Error) => failed.push(error) });
    const refused = await client.connect(transport).then(
      () => undefined,
      (error: unknown) => error,
    );
    return { client, transport, refused, failed };
  };
  const first = await begin();
  if (first.refused === undefined) return first;
  expect(first.refused).toBeInstanceOf(UnauthorizedError);
  await first.transport.finishAuth(await person.agree());
  const second = await begin();
  expect(second.refused).toBeUndefined();
  return second;
}

const metadata = (port: number) =>
  `resource_metadata="https://localhost:${port}/.well-known/oauth-protected-resource/mcp"`;

it("a client finds its way, calls a tool whose answer streams, and steps up", async () => {
  const person = new Person("ann");
  const { client } = await connected(person, resource);
  const challenge = `Bearer realm="sallyport", scope="mcp:tools", ${metadata(gate.port)}`;
  expect(person.answers.slice(0, 4)).toEqual([
    `401 /mcp ${challenge}`,
    "200 /.well-known/oauth-protected-resource/mcp",
    "200 /.well-known/oauth-authorization-server",
    "201 /reg",
  ]);
  const asked = Object.fromEntries(person.asked[0]?.searchParams ?? []);
  expect(asked).toMatchObject({ resource, scope: "mcp:tools", code_challenge_method: "S256" });
  expect(person.tokens()?.scope).toBe("mcp:tools");

  const times: number[] = [];
  const onprogress = () => times.push(performance.now());
  const counted = await client.callTool({ name: "count", arguments: { to: 5 } }, undefined, {
    onprogress,
  });
  const end = performance.now();
  expect(counted.content).toEqual([{ type: "text", text: "5 orders for ann" }]);
  expect(times).toHaveLength(5);
  // As the server writes it, not all at the end.
  expect(end - (times[0] ?? end)).toBeGreaterThan(350);

  const before = person.answers.length;
  const admin = await connected(person, `${resource}/admin`);
  expect(person.answers[before]).toBe(
    `403 /mcp/admin Bearer realm="sallyport", error="insufficient_scope", scope="mcp:tools mcp:admin", ${metadata(gate.port)}`,
  );
  expect(person.asked).toHaveLength(2);
  expect(person.asked[1]?.searchParams.get("scope")).toBe("mcp:tools mcp:admin");
  const forgotten = await admin.client.callTool({ name: "forget" });
  expect(forgotten.content).toEqual([{ type: "text", text: "ann has forgotten all orders" }]);
  // The new token opens both.
  const again = await client.callTool({ name: "count", arguments: { to: 1 } });
  expect(again.content).toEqual([{ type: "text", text: "1 orders for ann" }]);
  await Promise.all([client.close(), admin.client.close()]);
});

it("a stream ends with its token, and the client gets a new one", async () => {
  const person = new Person("ben");
  tokenLifetime = 3;
  const { client, failed } = await connected(person, resource);
  tokenLifetime = 600;
  const { exp } = JSON.parse(
    Buffer.from(person.tokens()?.access_token.split(".")[1] ?? "", "base64url").toString(),
  );
  const steps: number[] = [];
  const call = client
    .callTool({ name: "count", arguments: { to: 600 } }, undefined, {
      onprogress: ({ progress }) => steps.push(progress),
    })
    .catch((error: unknown) => error);
  await until(() => failed.length > 0, 8_000);
  const late = Date.now() - Number(exp) * 1_000;
  expect(late).toBeGreaterThanOrEqual(0);
  expect(late).toBeLessThan(1_500);
  expect(String(failed[0])).toContain("SSE stream disconnected");
  expect(steps.length).toBeGreaterThan(10);
  await until(() => backend.output().includes("the answer for ben was cut off"));
  await until(() => gate.log().some(({ reason }) => reason === "token_expired"));
  // To cancel the call would ask for a token, too.
  await client.close();
  await call;

  const before = person.answers.length;
  const renewed = await connected(person, resource);
  expect(person.answers[before]).toMatch(/^401 \/mcp Bearer realm="sallyport", error="invalid_to/);
  const counted = await renewed.client.callTool({ name: "count", arguments: { to: 1 } });
  expect(counted.content).toEqual([{ type: "text", text: "1 orders for ben" }]);
  await renewed.client.close();
});

it("a token for another resource, and one that the person has not agreed to, open nothing", async () => {
  const person = new Person("eve");
  const { client } = await connected(person, resource);
  const { access_token: token = "" } = person.tokens() ?? {};
  const call = (path: string, authorization: string) =>
    fetch(`https://localhost:${gate.port}${path}`, {
      method: "POST",
      headers: { authorization, "content-type": "application/json" },
      body: '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"forget"}}',
    });
  expect((await call("/mcp/admin", `Bearer ${token}`)).status).toBe(403);
  const opaque = new URL(person.asked[0] ?? "");
  opaque.searchParams.set("resource", "https://other.example.com/");
  person.asked.push(opaque);
  expect(await person.agree()).toContain("error=invalid_target");
  for (const path of ["/mcp/../mcp/admin", "/mcp/%61dmin", "/mcp/admin/", "//mcp/admin"]) {
    expect((await call(path, `Bearer ${token}`)).status).toBeOneOf([400, 403]);
  }
  await client.close();
});
