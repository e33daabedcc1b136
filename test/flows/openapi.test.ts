/** The OpenAPI description says of every endpoint for programs what it does, under every configuration. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { explainerFrom, withOwnGate } from "../../src/app/explanation/dry-run-gate.ts";
import { inspect } from "../../src/app/inspection.ts";
import { ERRORS } from "../../src/core/request/errors.ts";
import { newApiKey } from "../../src/tokens/api-keys/api-key-file.ts";
import { command } from "../cli/command.ts";
import { type Answer, ask, type Question } from "../support/ask.ts";
import { type EchoBackend, startEchoBackend } from "../support/echo-backend.ts";
import { ALICE, type Sallyport, startSallyport } from "../support/sallyport.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

interface Content {
  readonly content?: Readonly<Record<string, { readonly schema: object }>>;
}
interface Operation {
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly requestBody?: Content;
  readonly responses: Readonly<Record<string, Content & { readonly description: string }>>;
}
interface Scheme {
  readonly type: string;
  readonly in?: string;
  readonly name?: string;
  readonly bearerFormat?: string;
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: object;
    readonly securitySchemes: Readonly<Record<string, Scheme>>;
  };
}

const key = newApiKey("ci");
const PLACES = [
  { header: "Authorization" },
  { cookie: "session" },
  { query: "access_token" },
  { header: "X-Token" },
  { apiKey: "X-API-Key" },
];
const EVERYTHING = {
  browser: { page: "off" },
  metadata: {},
  apiKeys: [{ kind: "file", path: "api-keys.yaml" }],
  tokens: { jwks: { publish: true } },
  routes: [
    { name: "tools", path: "/tools", tokenFrom: PLACES, upstream: "app" },
    { name: "everything", path: "/", upstream: "app" },
  ],
};
/** What people and providers use: the description leaves it out. */
const FOR_PEOPLE = /\/(?:logout|login\/\w+(?:\/callback|\/backchannel)?)$/;
const SAME_ORIGIN = { "sec-fetch-site": "same-origin" };

let backend: EchoBackend;
let gate: Sallyport;
let document: Document;
beforeAll(async () => {
  backend = await startEchoBackend();
  gate = await startSallyport({
    target: backend.url,
    config: EVERYTHING,
    files: { "api-keys.yaml": JSON.stringify({ keys: { ci: { hash: key.hash } } }) },
  });
  document = JSON.parse((await ask({ port: gate.adminPort }, "/-/openapi")).body) as Document;
});
afterAll(async () => {
  await gate.close();
  await backend.close();
});

const operations = (): [path: string, method: string, operation: Operation][] =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, each]): [string, string, Operation] => [
      path,
      method.toUpperCase(),
      each,
    ]),
  );

/** Expects what the description says of this status. */
function expectDescribed(answer: Answer, method: string, { responses }: Operation): void {
  const described = responses[answer.status];
  expect(described, `${answer.status} of ${Object.keys(responses).join(", ")}`).toBeDefined();
  if (method === "HEAD") {
    expect([described?.content, answer.body]).toEqual([undefined, ""]);
    return;
  }
  const [[type, { schema }] = ["", { schema: {} }]] = Object.entries(described?.content ?? {});
  expect(answer.headers["content-type"]).toBe(type);
  expect(parsed(schema, answer.body)).toMatchObject({ success: true });
}

function parsed(schema: object, body: string) {
  const whole = JSON.stringify({ ...schema, $defs: document.components.schemas });
  const local = JSON.parse(whole.replaceAll("#/components/schemas/", "#/$defs/"));
  return z.fromJSONSchema(local).safeParse(JSON.parse(body));
}

/** Puts the credentials of one scheme into a question. */
function withScheme(path: string, name: string, question: Question): [string, Question] {
  const { type, in: place, name: field = "" } = document.components.securitySchemes[name] ?? {};
  const headers = { ...question.headers };
  if (type === "http") return [path, { ...question, token: gate.token }];
  if (place === "query") return [`${path}?${field}=${gate.token}`, question];
  if (place === "cookie") headers["cookie"] = `${field}=${gate.token}`;
  else headers[field] = name.startsWith("apiKey") ? key.key : gate.token;
  return [path, { ...question, headers }];
}

const JSON_FIELD = { "content-type": "application/json" };

it("is the same as that of the command, and only for those in admin.allow", async () => {
  const file = join(gate.directory, "config.yaml");
  const { code, out } = await command(["openapi", "--config", file]);
  expect({ code, document: JSON.parse(out) as Document }).toEqual({ code: 0, document });
  const headers = { origin: "https://elsewhere.example" };
  const foreign = await ask({ port: gate.adminPort }, "/-/openapi", { headers });
  expect(foreign.status).toBe(403);
});

it("every operation does what it says, with each of its credentials and without", async () => {
  const asked: string[] = [];
  // Last those that revoke the token of the others.
  const ordered = operations().toSorted((one, other) => rank(one) - rank(other));
  for (const [path, method, operation] of ordered) {
    const { security, requestBody } = operation;
    const body = requestBody === undefined ? undefined : JSON.stringify(ALICE);
    const question: Question = {
      method,
      headers: { ...SAME_ORIGIN, ...(body === undefined ? {} : JSON_FIELD) },
      ...(body === undefined ? {} : { body }),
    };
    const tries: [string, Question][] = security.map((one) =>
      withScheme(path, Object.keys(one)[0] ?? "", question),
    );
    for (const [target, how] of tries.length === 0 ? [[path, question] as const] : tries) {
      const answer = await ask(gate, target, how);
      // An API key is no token that it could revoke.
      const noLogout = path === "/api/logout" && how.headers?.["X-API-Key"] !== undefined;
      expect([method, target, answer.status]).toEqual([method, target, noLogout ? 403 : 200]);
      expectDescribed(answer, method, operation);
    }
    if (security.length > 0) {
      const refused = await ask(gate, path, question);
      expect(refused.status).toBe(401);
      expectDescribed(refused, method, operation);
    }
    asked.push(`${method} ${path}`);
  }
  const some = ["POST /api/authenticate", "GET /api/v1/version", "DELETE /api/logout"];
  expect(asked).toEqual(expect.arrayContaining(some));
});

const rank = ([path]: readonly [string, ...unknown[]]): number => (path === "/api/logout" ? 1 : 0);

describe("a login that fails gets what is described", () => {
  const json = (value: unknown): Question => ({ body: JSON.stringify(value), headers: JSON_FIELD });
  it.each<[status: number, Question]>([
    [400, json({ username: "alice" })],
    [401, json({ username: "alice", password: "wrong" })],
    [413, json({ username: "alice", password: "x".repeat(17_000) })],
    [415, { body: "{}", headers: { "content-type": "text/plain" } }],
  ])("%i", async (status, question) => {
    for (const path of ["/api/authenticate", "/_sallyport/login"]) {
      const headers = { ...SAME_ORIGIN, ...question.headers };
      const answer = await ask(gate, path, { ...question, headers, method: "POST" });
      expect(answer.status).toBe(status);
      const operation = document.paths[path]?.["post"];
      if (operation !== undefined) expectDescribed(answer, "POST", operation);
    }
  });
});

it.each(["/_sallyport/login", "/api/logout"])("another site gets 403 from %s", async (path) => {
  const headers = { ...JSON_FIELD, cookie: `session=${gate.token}` };
  const question = { method: "POST", headers, body: JSON.stringify(ALICE) };
  const answer = await ask(gate, path, question);
  const { message } = JSON.parse(answer.body) as { message: string };
  expect([answer.status, message]).toEqual([ERRORS.cross_site.status, ERRORS.cross_site.message]);
  expect(document.paths[path]?.["post"]?.responses["403"]?.description).toContain(message);
});

it("the schemas refuse what is not an answer", () => {
  const schema = { $ref: "#/components/schemas/LoginAnswer" };
  const whole = { id: 1, message: "x", success: true, token: "x" };
  expect(parsed(schema, JSON.stringify(whole)).success).toBe(true);
  for (const member of Object.keys(whole)) {
    const less = JSON.stringify({ ...whole, [member]: undefined });
    expect([member, parsed(schema, less).success]).toEqual([member, false]);
  }
});

/** Returns the endpoints that a gate has under this configuration, and those of the description: methods by path. */
async function compared(file: string) {
  const snapshot = await inspect({ file, env: {}, overrides: {} });
  const real = await withOwnGate(await explainerFrom(snapshot), async ({ endpoints }) =>
    Object.fromEntries(Array.from(endpoints, ([path, { methods }]) => [path, methods])),
  );
  const { paths } = JSON.parse((await command(["openapi", "--config", file])).out) as Document;
  const described = Object.fromEntries(
    Object.entries(paths).map(([path, methods]) => [
      path,
      Object.keys(methods).map((method) => method.toUpperCase()),
    ]),
  );
  return { real, described };
}

describe("no endpoint of the gate is missing, and none is described that it has not", () => {
  it("with everything that has endpoints", async () => {
    const { real, described } = await compared(join(gate.directory, "config.yaml"));
    const { "/_sallyport/logout": _forPeople, ...others } = real;
    expect(described).toEqual(others);
    expect(Object.keys(described)).toHaveLength(11);
  });

  it("with pages and a provider, which are for people", async () => {
    await using directory = await temporaryDirectory();
    const provider = { name: "company", issuer: "https://id.example.com", clientId: "x" };
    const config = {
      server: { tls: "off", ownPath: "/own" },
      browser: { page: { title: "Orders" }, providers: [provider] },
      users: [{ kind: "file", path: "users.yaml" }],
      upstreams: { app: { targets: ["http://127.0.0.1:9"] } },
    };
    await directory.write("users.yaml", "users: {}\n");
    const file = await directory.write("config.yaml", JSON.stringify(config));
    const { real, described } = await compared(file);
    const left = Object.keys(real).filter((path) => !Object.hasOwn(described, path));
    expect(left.filter((path) => !FOR_PEOPLE.test(path) || !path.startsWith("/own/"))).toEqual([]);
    expect(left).toHaveLength(4);
    expect(described).toEqual({
      ...Object.fromEntries(Object.entries(real).filter(([path]) => !left.includes(path))),
      "/own/login": ["POST"],
    });
    expect(real["/own/login"]).toEqual(["GET", "HEAD", "POST"]);
  });

  it.each([
    ["nothing", ""],
    ["logout", "tokens: { revocation: { logout: true } }\n"],
    ["keys", "tokens: { jwks: { publish: true } }\n"],
    ["metadata", "metadata: { resource: 'https://api.example.com/mcp' }\n"],
  ])("with %s", async (_name, more) => {
    await using directory = await temporaryDirectory();
    const least = "server: { tls: off }\nupstreams: { app: { targets: [http://127.0.0.1:9] } }\n";
    const { real, described } = await compared(await directory.write("config.yaml", least + more));
    expect(described).toEqual(real);
  });
});

it("the one in the documents is that of config.yaml", async () => {
  const root = join(import.meta.dirname, "../..");
  // To update it: node src/main.ts openapi > docs/reference/openapi.json
  const { out } = await command(["openapi", "--config", join(root, "config.yaml")]);
  expect(readFileSync(join(root, "docs/reference/openapi.json"), "utf8")).toBe(out);
});
