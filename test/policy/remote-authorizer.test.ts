import { describe, expect, onTestFinished, test, vi } from "vitest";
import { GateError } from "../../src/core/request/errors.ts";
import type { Identity } from "../../src/core/request/identity.ts";
import type { GateRequest } from "../../src/core/request/gate-request.ts";
import {
  type AuthorizationSettings,
  openAuthorizer,
} from "../../src/policy/remote/authorizer-kinds.ts";
import { identityWith, requestWith } from "../support/permit.ts";
import { type RemoteReply, startRemoteServer, type Asked } from "../support/remote-server.ts";
import { setClock } from "../tokens/fixture.ts";

const ISSUER = identityWith().issuer;

async function opened(
  answer: (asked: Asked) => RemoteReply,
  settings: (url: string) => Partial<AuthorizationSettings> & Pick<AuthorizationSettings, "kind">,
) {
  const server = await startRemoteServer(answer);
  onTestFinished(() => server.close());
  const clock = setClock();
  const told: string[] = [];
  const authorizer = openAuthorizer(
    {
      timeout: 2_000,
      cache: 30_000,
      onError: "unavailable",
      ...settings(server.url),
    } as AuthorizationSettings,
    clock,
    {
      cached: () => void told.push("cached"),
      stale: () => void told.push("stale"),
      answered: (allowed) => void told.push(allowed ? "allowed" : "denied"),
      failed: (reason) => void told.push(reason),
    },
  );
  onTestFinished(() => authorizer.close());
  const allows = async (request: GateRequest, identity: Identity): Promise<boolean | string> => {
    try {
      return await authorizer.allows(request, identity);
    } catch (error) {
      if (error instanceof GateError) return error.code;
      throw error;
    }
  };
  return { server, clock, told, allows, authorizer };
}

const review = (allowed: unknown, more: object = {}) => ({
  status: 201,
  body: { kind: "SubjectAccessReview", status: { allowed, ...more } },
});

function reviewing(answer: (asked: Asked) => RemoteReply = () => review(true), more: object = {}) {
  return opened(answer, (apiServer) => ({
    kind: "subjectAccessReview",
    apiServer,
    issuers: [ISSUER],
    ...more,
  }));
}

const specsOf = (asked: readonly Asked[]): unknown[] =>
  asked.map(({ body }) => (JSON.parse(body) as { spec: unknown }).spec);

describe("a review", () => {
  test.each([
    ["GET", "get"],
    ["HEAD", "get"],
    ["POST", "create"],
    ["PUT", "update"],
    ["PATCH", "patch"],
    ["DELETE", "delete"],
    ["OPTIONS", "*"],
  ])("of a path uses the verb of the method: %s is %s", async (method, verb) => {
    const { allows, server } = await reviewing();
    const caller = identityWith({ subject: "system:serviceaccount:a:b", groups: ["x", "y"] });
    expect(await allows(requestWith({ method, matchPath: "/metrics" }), caller)).toBe(true);
    expect(server.asked[0]?.url).toBe("/apis/authorization.k8s.io/v1/subjectaccessreviews");
    expect(specsOf(server.asked)).toEqual([
      {
        user: "system:serviceaccount:a:b",
        groups: ["x", "y"],
        nonResourceAttributes: { path: "/metrics", verb },
      },
    ]);
  });

  test("of a resource contains the request's values that its templates name", async () => {
    const resource = {
      group: "apps",
      resource: "deployments",
      subresource: "proxy",
      namespace: "${query:namespace}",
      name: "${header:X-App}",
    };
    const denied = "b";
    const { allows, server } = await reviewing(
      ({ body }) => review(!body.includes(`"namespace":"${denied}"`)),
      { resource },
    );
    const asking = (query: string, ...rawHeaders: string[]) =>
      allows(requestWith({ query, rawHeaders }), identityWith());
    expect(await asking("?namespace=a", "X-App", "shop")).toBe(true);
    expect(specsOf(server.asked)).toMatchObject([
      { resourceAttributes: { ...resource, namespace: "a", name: "shop", verb: "get" } },
    ]);
    expect(await asking("?namespace=a&namespace=b", "X-App", "shop")).toBe(false);
    expect(await asking("?namespace=a", "X-App", "shop", "x_app", "other")).toBe(true);
    expect(specsOf(server.asked)).toHaveLength(3);
    const before = server.asked.length;
    for (const [query, ...fields] of [
      ["", "X-App", "shop"],
      ["?namespace=", "X-App", "shop"],
      ["?namespace=a"],
      ["?namespace=a;namespace=b", "X-App", "shop"],
      [`?${"namespace=a&".repeat(17)}`, "X-App", "shop"],
      ["?namespace=a%00", "X-App", "shop"],
    ]) {
      expect(await asking(query ?? "", ...fields)).toBe(false);
    }
    expect(server.asked).toHaveLength(before);
  });

  test("is made only for callers of the named issuers", async () => {
    const { allows, server } = await reviewing();
    const other = identityWith({ issuer: "https://other.example", subject: "system:admin" });
    expect(await allows(requestWith(), other)).toBe(false);
    expect(server.asked).toEqual([]);
  });

  test.each<[string, RemoteReply]>([
    ["an error", { status: 500 }],
    ["a refusal of our own token", { status: 403 }],
    ["no JSON", { body: "<html>" }],
    ["no status", { body: {} }],
    ["a text", review("true")],
    ["two answers", { body: '{"status":{"allowed":false,"allowed":true}}' }],
    ["too much", { body: " ".repeat(70_000) }],
    ["a closed connection", "reset"],
  ])("fails if the answer is %s", async (_what, reply) => {
    const { allows, told } = await reviewing(() => reply);
    expect(await allows(requestWith(), identityWith())).toBe("authorization_unavailable");
    expect(told).toHaveLength(1);
  });

  test("that is both allowed and denied is denied", async () => {
    const { allows } = await reviewing(() => review(true, { denied: true }));
    expect(await allows(requestWith(), identityWith())).toBe(false);
  });

  test("that hangs times out", async () => {
    const { allows, told } = await reviewing(() => "hang", { timeout: 50 });
    expect(await allows(requestWith(), identityWith())).toBe("authorization_unavailable");
    expect(told).toEqual(["no answer in time"]);
  });
});

describe("answers", () => {
  test("are cached separately: a yes for the configured time, a no for five seconds", async () => {
    let allowed = true;
    const { allows, clock, server } = await reviewing(() => review(allowed));
    const alice = identityWith({ subject: "alice" });
    expect(await allows(requestWith(), alice)).toBe(true);
    allowed = false;
    expect(await allows(requestWith(), alice)).toBe(true);
    expect(await allows(requestWith(), identityWith({ subject: "bob" }))).toBe(false);
    expect(await allows(requestWith({ method: "POST" }), alice)).toBe(false);
    expect(await allows(requestWith({ matchPath: "/other" }), alice)).toBe(false);
    expect(await allows(requestWith(), identityWith({ subject: "alice", groups: [] }))).toBe(false);
    clock.advance(29_999);
    expect(await allows(requestWith(), alice)).toBe(true);
    const { length } = server.asked;
    allowed = true;
    expect(await allows(requestWith({ method: "POST" }), alice)).toBe(true);
    clock.advance(1);
    allowed = false;
    expect(await allows(requestWith(), alice)).toBe(false);
    expect(server.asked).toHaveLength(length + 2);
  });

  test("are requested once at a time, and excess requests are refused immediately", async () => {
    const { authorizer, allows, server } = await reviewing(() => "hang", { timeout: 800 });
    const same = Array.from({ length: 50 }, () => allows(requestWith(), identityWith()));
    const others = Array.from({ length: 300 }, (_, n) =>
      allows(requestWith({ matchPath: `/${n}` }), identityWith()),
    );
    // Checked before the first of them times out and makes room for another.
    await vi.waitUntil(() => server.asked.length >= 8);
    await new Promise((resolve) => setTimeout(resolve, 50));
    // Half of the connections, since all concern one caller.
    expect(server.asked.length).toBe(8);
    const answers = await Promise.all([...same, ...others]);
    expect(new Set(answers)).toEqual(new Set(["authorization_unavailable"]));
    authorizer.close();
  });

  test("are not cached if they fail; with onError: deny, a failure is a no", async () => {
    let reply: RemoteReply = { status: 500 };
    const { allows } = await reviewing(() => reply, { onError: "deny" });
    expect(await allows(requestWith(), identityWith())).toBe(false);
    reply = review(true);
    expect(await allows(requestWith(), identityWith())).toBe(true);
  });
});

describe("an HTTP server", () => {
  const calling = (status: number, more: object = {}) =>
    opened(
      () => ({ status }),
      (url) => ({ kind: "http", url: `${url}/v1/data/allow`, cache: 0, ...more }),
    );

  test.each([
    [200, true],
    [204, true],
    [400, false],
    [401, false],
    [403, false],
    [404, false],
    [429, "authorization_unavailable"],
    [302, "authorization_unavailable"],
    [500, "authorization_unavailable"],
    [503, "authorization_unavailable"],
  ])("with the answer %i: %s", async (status, expected) => {
    const { allows } = await calling(status);
    expect(await allows(requestWith(), identityWith())).toBe(expected);
  });

  test("receives the request and the caller, without query, token or cookie, every time", async () => {
    const { allows, server } = await calling(200);
    const request = requestWith({
      method: "POST",
      matchPath: "/orders",
      query: "?access_token=secret",
      rawHeaders: ["Authorization", "Bearer secret", "Cookie", "secret"],
    });
    const claims = new Map([["tenant", "acme"]]);
    const caller = identityWith({ subject: "alice", groups: ["sales"], claims });
    await allows(request, caller);
    await allows(request, caller);
    expect(server.asked).toHaveLength(2);
    expect(JSON.parse(server.asked[0]?.body ?? "")).toMatchObject({
      method: "POST",
      path: "/orders",
      subject: "alice",
      groups: ["sales"],
      issuer: ISSUER,
      claims: { tenant: "acme" },
    });
    expect(JSON.stringify(server.asked)).not.toContain("secret");
  });
});

describe("while the API server is away", () => {
  const request = requestWith();
  const caller = identityWith();

  const outage = async (more: object) => {
    const state = { reply: review(true) as RemoteReply };
    const opened = await reviewing(() => state.reply, { cache: 30_000, ...more });
    expect(await opened.allows(request, caller)).toBe(true);
    return { ...opened, state };
  };

  test("an earlier yes stands in for staleFor after cache, and the server is asked at intervals", async () => {
    const { allows, clock, state, told, server } = await outage({ staleFor: 60_000 });
    state.reply = { status: 500, body: {} };
    clock.advance(31_000);
    expect(await allows(request, caller)).toBe(true);
    expect(await allows(request, caller)).toBe(true);
    expect(server.asked).toHaveLength(2);
    expect(told).toEqual(["allowed", "status 500", "stale", "stale"]);
    clock.advance(1_500);
    expect(await allows(request, caller)).toBe(true);
    expect(server.asked).toHaveLength(3);
    clock.advance(60_000);
    expect(await allows(request, caller)).toBe("authorization_unavailable");
  });

  test("a no ends it, and never becomes a yes", async () => {
    const { allows, clock, state } = await outage({ staleFor: 60_000 });
    state.reply = review(false);
    clock.advance(31_000);
    expect(await allows(request, caller)).toBe(false);
    state.reply = { status: 500, body: {} };
    clock.advance(10_000);
    expect(await allows(request, caller)).toBe("authorization_unavailable");
  });

  test("callers who fill their own queue are not an outage", async () => {
    const { allows, clock, state } = await outage({ staleFor: 60_000 });
    state.reply = review(false);
    clock.advance(31_000);
    const flood = Array.from({ length: 400 }, (_, i) =>
      allows(requestWith({ path: `/${i}`, matchPath: `/${i}` }), caller),
    );
    expect(await allows(request, caller)).not.toBe(true);
    expect(await Promise.all(flood)).not.toContain(true);
  });

  test("nothing stands in without staleFor", async () => {
    const { allows, clock, state } = await outage({});
    state.reply = { status: 500, body: {} };
    clock.advance(31_000);
    expect(await allows(request, caller)).toBe("authorization_unavailable");
  });
});
