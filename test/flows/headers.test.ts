import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask, fieldsOf } from "../support/ask.ts";
import { startEchoBackend, type EchoBackend } from "../support/echo-backend.ts";
import { echoedBy, type Echoed } from "../support/echoed.ts";
import { editConfiguration } from "../support/edits.ts";
import { startSallyport, type ConfigParts, type Sallyport } from "../support/sallyport.ts";

let backend: EchoBackend;
let gate: Sallyport;
beforeAll(async () => {
  backend = await startEchoBackend();
  gate = await startSallyport({ target: backend.url });
});
afterAll(async () => {
  await gate.close();
  await backend.close();
});

/** Sends a request with these headers. @returns what the backend received. */
async function echoed(
  through: Sallyport,
  headers: Readonly<Record<string, string>> = {},
): Promise<Echoed> {
  return echoedBy(await ask(through, "/x", { token: through.token, headers }));
}

function valuesOf(got: Echoed, names: readonly string[]): Record<string, string | undefined> {
  return Object.fromEntries(names.map((name) => [name, got.header(name)]));
}

describe("the caller's identity", () => {
  const NAMES = [
    ...["x-auth-subject", "x-auth-groups", "x-auth-issuer"],
    ...["x-forwarded-user", "x-forwarded-groups", "x-remote-user", "x-remote-groups"],
    ...["x-user", "x-groups"],
  ];
  const PRESETS: readonly (readonly [unknown, ConfigParts])[] = [
    [
      "sallyport",
      { "x-auth-subject": "alice", "x-auth-groups": "sales", "x-auth-issuer": "sallyport" },
    ],
    ["oauth2-proxy", { "x-forwarded-user": "alice", "x-forwarded-groups": "sales" }],
    ["kube-rbac-proxy", { "x-remote-user": "alice", "x-remote-groups": "sales" }],
    [
      { subject: "X-User", groups: "X-Groups" },
      { "x-user": "alice", "x-groups": "sales" },
    ],
  ];

  let other: Sallyport;
  beforeAll(async () => (other = await startSallyport({ target: backend.url })));
  afterAll(() => other.close());

  it.each(PRESETS)("is sent in the headers of %j and in no others", async (headers, expected) => {
    await editConfiguration(other, (config) => void (config["identity"] = { headers }));
    const admin = { port: other.adminPort };
    expect((await ask(admin, "/-/reload", { method: "POST" })).status).toBe(200);
    const forged = Object.fromEntries(NAMES.slice(0, 7).map((name) => [name, "root"]));
    const got = valuesOf(await echoed(other, forged), NAMES);
    expect(
      Object.fromEntries(Object.entries(got).filter(([, value]) => value !== undefined)),
    ).toEqual(expected);
  });
});

describe("the forwarding headers", () => {
  const NAMES = [
    ...["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-port"],
    ...["x-real-ip", "forwarded"],
  ];
  const SENT = {
    host: "api.example.com:9000",
    "x-forwarded-for": "192.0.2.9, 203.0.113.7",
    "x-forwarded-proto": "http",
    "x-forwarded-host": "shop.example.com",
    "x-forwarded-port": "80",
    "x-real-ip": "203.0.113.7",
    forwarded: "for=203.0.113.7",
  };

  it("are set by Sallyport for an untrusted peer", async () => {
    expect(valuesOf(await echoed(gate, SENT), NAMES)).toEqual({
      "x-forwarded-for": "127.0.0.1",
      "x-forwarded-proto": "https",
      "x-forwarded-host": "api.example.com:9000",
      "x-forwarded-port": "9000",
      "x-real-ip": "127.0.0.1",
      forwarded: 'for=127.0.0.1;host="api.example.com:9000";proto=https',
    });
  });

  it("are taken from a trusted proxy, with its own address appended", async () => {
    await using behind = await startSallyport({
      target: backend.url,
      config: { server: { trustedProxies: ["127.0.0.0/8"] } },
    });
    expect(valuesOf(await echoed(behind, SENT), NAMES)).toEqual({
      "x-forwarded-for": "192.0.2.9, 203.0.113.7, 127.0.0.1",
      "x-forwarded-proto": "http",
      "x-forwarded-host": "shop.example.com",
      "x-forwarded-port": "80",
      "x-real-ip": "203.0.113.7",
      forwarded: 'for=203.0.113.7, for=127.0.0.1;host="api.example.com:9000";proto=https',
    });
  });
});

describe("X-Request-Id", () => {
  it.each(["a", "0af-1_2.Z", "x".repeat(128)])("is kept and returned: %s", async (id) => {
    const answer = await ask(gate, "/x", { token: gate.token, headers: { "x-request-id": id } });
    expect(answer.headers["x-request-id"]).toBe(id);
    expect(echoedBy(answer).header("x-request-id")).toBe(id);
    const refused = await ask(gate, "/x", { headers: { "x-request-id": id } });
    expect(refused.headers["x-request-id"]).toBe(id);
  });

  it.each([undefined, "", "a b", "a,b", "x".repeat(129), "<script>"])(
    "is generated when it is %s",
    async (id) => {
      const headers: Record<string, string> = id === undefined ? {} : { "x-request-id": id };
      const answer = await ask(gate, "/x", { token: gate.token, headers });
      const made = answer.headers["x-request-id"];
      expect(made).toMatch(/^[A-Za-z0-9._-]{1,128}$/);
      expect(made).not.toBe(id);
      expect(echoedBy(answer).header("x-request-id")).toBe(made);
    },
  );

  it("differs for every request", async () => {
    const answers = await Promise.all([1, 2, 3].map(() => ask(gate, "/public/x")));
    expect(new Set(answers.map(({ headers }) => headers["x-request-id"])).size).toBe(3);
  });
});

describe("other headers", () => {
  it("pass unchanged, including traceparent", async () => {
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const got = await echoed(gate, { traceparent, "x-anything": "1", accept: "text/x" });
    expect(got.header("traceparent")).toBe(traceparent);
    expect(got.header("x-anything")).toBe("1");
    expect(got.header("accept")).toBe("text/x");
  });
});

describe("the backend's answer", () => {
  it("passes unchanged, even a 401, without fields of the proxy's own responses", async () => {
    for (const status of [201, 204, 301, 304, 401, 403, 404, 418, 500, 502, 503, 504]) {
      const answer = await ask(gate, `/status/${status}`, { token: gate.token });
      expect(answer.status).toBe(status);
      expect(answer.body).toBe("");
      expect(answer.headers["x-echo"]).toBe("1");
      expect(answer.headers["proxy-status"]).toBeUndefined();
      expect(answer.headers["www-authenticate"]).toBeUndefined();
      expect(answer.headers["cache-control"]).toBeUndefined();
    }
  });

  it("keeps multiple Set-Cookie fields separate, and redirects are not followed", async () => {
    const cookies = await ask(gate, "/public/cookies");
    expect(cookies.headers["set-cookie"]).toEqual(["a=1", "b=2"]);
    const redirect = await ask(gate, "/public/redirect");
    expect(redirect.status).toBe(302);
    expect(redirect.headers.location).toBe("/elsewhere");
  });

  it("is not wrapped in an envelope", async () => {
    expect(fieldsOf(await ask(gate, "/public/x"))["id"]).toBeUndefined();
  });
});
