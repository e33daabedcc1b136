/** What every kind of authorization server must fulfil. A kind without an entry here does not compile. */
import { describe, expect, onTestFinished, test } from "vitest";
import { GateError } from "../../src/core/request/errors.ts";
import {
  type AuthorizationSettings,
  type AuthorizerKindName,
  authorizerProbe,
  AUTHORIZERS,
  completeAuthorizer,
  openAuthorizer,
} from "../../src/policy/remote/authorizer-kinds.ts";
import { identityWith, requestWith } from "../support/permit.ts";
import { type RemoteReply, startRemoteServer } from "../support/remote-server.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { setClock } from "../tokens/fixture.ts";

const COMMON = { timeout: 5_000, cache: 30_000, onError: "unavailable" } as const;
type Common = { readonly [Key in "timeout" | "cache" | "onError"]: AuthorizationSettings[Key] } & {
  readonly tokenFile?: string;
};

interface Protocol {
  settings(url: string, common: Common): AuthorizationSettings;
  reply(allowed: boolean): RemoteReply;
  /** The caller and the request that a question is about. */
  about(body: string): { readonly user: unknown; readonly path: unknown };
}

const PROTOCOLS = {
  subjectAccessReview: {
    settings: (apiServer, common) => ({
      kind: "subjectAccessReview",
      apiServer,
      staleFor: 0,
      ...common,
    }),
    reply: (allowed) => ({ status: 201, body: { status: { allowed } } }),
    about(body) {
      const { spec } = JSON.parse(body) as {
        spec: { user: unknown; nonResourceAttributes: { path: unknown } };
      };
      return { user: spec.user, path: spec.nonResourceAttributes.path };
    },
  },
  http: {
    settings: (url, common) => ({ kind: "http", url, ...common }),
    reply: (allowed) => ({ status: allowed ? 200 : 403 }),
    about(body) {
      const { subject: user, path } = JSON.parse(body) as { subject: unknown; path: unknown };
      return { user, path };
    },
  },
} satisfies Record<AuthorizerKindName, Protocol>;

const alice = identityWith({ subject: "alice" });

async function opened(protocol: Protocol, answer: () => RemoteReply, common: Partial<Common> = {}) {
  const server = await startRemoteServer(answer);
  onTestFinished(() => server.close());
  const written = protocol.settings(server.url, { ...COMMON, ...common });
  const settings = completeAuthorizer(written, [alice.issuer]);
  const observed: string[] = [];
  const clock = setClock();
  const authorizer = openAuthorizer(settings, clock, {
    cached: () => void observed.push("cached"),
    stale: () => void observed.push("stale"),
    answered: (allowed) => void observed.push(allowed ? "allowed" : "denied"),
    failed: (reason) => void observed.push(reason),
  });
  onTestFinished(() => authorizer.close());
  const allows = async (request = requestWith(), caller = alice): Promise<boolean | string> => {
    try {
      return await authorizer.allows(request, caller);
    } catch (error) {
      if (error instanceof GateError) return error.code;
      throw error;
    }
  };
  return { server, settings, allows, observed, clock };
}

test("every kind of the table is tested", () => {
  expect(Object.keys(PROTOCOLS)).toEqual(AUTHORIZERS);
});

describe.each(Object.entries<Protocol>(PROTOCOLS))("%s", (_kind, protocol) => {
  const { reply, about } = protocol;

  test("allows and denies as the server says", async () => {
    let allowed = true;
    const { allows, observed } = await opened(protocol, () => reply(allowed), { cache: 0 });
    expect(await allows()).toBe(true);
    allowed = false;
    expect(await allows()).toBe(false);
    expect(observed).toEqual(["allowed", "denied"]);
  });

  test("asks about the caller and the path, and sends no query, token or cookie", async () => {
    const { allows, server } = await opened(protocol, () => reply(true));
    const request = requestWith({
      matchPath: "/orders",
      query: "?access_token=hunter22",
      authorization: "Bearer hunter22",
      rawHeaders: ["Authorization", "Bearer hunter22", "Cookie", "session=hunter22"],
    });
    expect(await allows(request)).toBe(true);
    expect(server.asked.map(({ body }) => about(body))).toEqual([
      { user: "alice", path: "/orders" },
    ]);
    expect(JSON.stringify(server.asked)).not.toContain("hunter22");
  });

  test("caches a yes for as long as configured, and a no for five seconds, for each caller", async () => {
    let allowed = true;
    const { allows, clock, server } = await opened(protocol, () => reply(allowed));
    expect(await allows()).toBe(true);
    allowed = false;
    expect(await allows(requestWith(), identityWith({ subject: "bob" }))).toBe(false);
    clock.advance(29_999);
    expect(await allows()).toBe(true);
    expect(server.asked).toHaveLength(2);
    clock.advance(1);
    expect(await allows()).toBe(false);
    allowed = true;
    clock.advance(5_000);
    expect(await allows()).toBe(true);
  });

  test.each<RemoteReply>([{ status: 500 }, { status: 429 }, { status: 302 }, "reset"])(
    "decides nothing by the answer %j, and asks again",
    async (answer) => {
      let current = answer;
      const { allows } = await opened(protocol, () => current);
      expect(await allows()).toBe("authorization_unavailable");
      current = reply(true);
      expect(await allows()).toBe(true);
    },
  );

  test("decides nothing without an answer in time", async () => {
    const { allows, observed } = await opened(protocol, () => "hang", { timeout: 50 });
    expect(await allows()).toBe("authorization_unavailable");
    expect(observed).toEqual(["no answer in time"]);
  });

  test("never allows what it cannot decide", async () => {
    const { allows } = await opened(protocol, () => ({ status: 500 }), { onError: "deny" });
    expect(await allows()).toBe(false);
  });

  test("presents the token of tokenFile to the server", async () => {
    await using directory = await temporaryDirectory();
    const tokenFile = await directory.write("token", "ours\n");
    const { allows, server } = await opened(protocol, () => reply(true), { tokenFile });
    expect(await allows()).toBe(true);
    expect(server.asked[0]?.headers.authorization).toBe("Bearer ours");
  });

  test("can be probed with a caller that does not exist", async () => {
    let answer = reply(false);
    const { settings, server } = await opened(protocol, () => answer);
    const probe = authorizerProbe(settings, "nobody");
    expect(probe.url).toBe(server.url);
    expect(probe.hint).not.toBe("");
    expect(await probe.ask(AbortSignal.timeout(5_000))).toBe(false);
    expect(about(server.asked[0]?.body ?? "")).toEqual({ user: "nobody", path: "/" });
    answer = { status: 500 };
    await expect(probe.ask(AbortSignal.timeout(5_000))).rejects.toThrow("status 500");
  });
});
