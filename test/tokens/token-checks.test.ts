/** What every kind of server that verifies tokens must fulfil. A kind without an entry here does not compile. */
import { describe, expect, onTestFinished, test } from "vitest";
import { GateError } from "../../src/core/request/errors.ts";
import {
  type TokenCheckName,
  tokenCheckOf,
  TOKEN_CHECKS,
  type RemoteIssuer,
} from "../../src/tokens/remote/token-check-kinds.ts";
import { RemoteVerification } from "../../src/tokens/remote/remote-verification.ts";
import { type Asked, type RemoteReply, startRemoteServer } from "../support/remote-server.ts";
import { setClock } from "./fixture.ts";

interface Caller {
  readonly sub: unknown;
  readonly groups?: readonly string[];
  readonly aud?: readonly string[];
}

interface Protocol {
  settings(
    url: string,
    times: { timeout: number; cache: number; staleFor: number },
  ): Pick<RemoteIssuer, TokenCheckName>;
  /** The token that the server is asked about. */
  tokenIn(asked: Asked): string;
  /** Vouches for a caller; `undefined` refuses the token. */
  reply(caller: Caller | undefined): RemoteReply;
  /** Another answer that is not a yes. */
  readonly odd: readonly RemoteReply[];
}

const PROTOCOLS = {
  introspection: {
    settings: (url, times) => ({
      introspection: { url, clientId: "sallyport", clientSecret: "secret", ...times },
    }),
    tokenIn: ({ body }) => new URLSearchParams(body).get("token") ?? "",
    reply: (caller) => ({ body: { active: caller !== undefined, ...caller } }),
    odd: [{ body: { active: "true", sub: "zoe" } }, { body: { sub: "zoe" } }],
  },
  tokenReview: {
    settings: (apiServer, times) => ({
      tokenReview: { apiServer, audiences: ["orders"], ...times },
    }),
    tokenIn: ({ body }) => (JSON.parse(body) as { spec: { token: string } }).spec.token,
    reply: (caller) => ({
      status: 201,
      body: {
        status:
          caller === undefined
            ? { authenticated: false }
            : {
                authenticated: true,
                user: { username: caller.sub, groups: caller.groups },
                audiences: caller.aud ?? ["orders"],
              },
      },
    }),
    odd: [
      { body: { authenticated: true } },
      { body: { status: { authenticated: true, audiences: ["orders"] } } },
    ],
  },
} satisfies Record<TokenCheckName, Protocol>;

const OPAQUE = { digest: "digest", opaque: true, notes: undefined };

async function opened(
  protocol: Protocol,
  answer: (token: string) => RemoteReply,
  timeout = 5_000,
  staleFor = 0,
) {
  const server = await startRemoteServer((asked) => answer(protocol.tokenIn(asked)));
  onTestFinished(() => server.close());
  const settings = protocol.settings(server.url, { timeout, cache: 30_000, staleFor });
  const observed: string[] = [];
  const clock = setClock();
  const verification = new RemoteVerification({
    issuers: [{ issuer: "elsewhere", clockSkew: 0, ...settings }],
    needed: { scopes: false, names: ["aud"] },
    clock,
    observe: (kind, issuer) => ({
      cached: () => undefined,
      stale: () => void observed.push("stale"),
      answered: (allowed) => void observed.push(`${kind} ${issuer} ${allowed}`),
      failed: (reason) => void observed.push(reason),
    }),
  });
  onTestFinished(() => verification.close());
  const verify = async (token: string) => {
    try {
      return await verification.verify(token, { ...OPAQUE, digest: token });
    } catch (error) {
      if (error instanceof GateError) return error.code;
      throw error;
    }
  };
  return { server, settings, verification, verify, observed, clock };
}

test("every kind of the table is tested", () => {
  expect(Object.keys(PROTOCOLS)).toEqual(TOKEN_CHECKS);
});

describe.each(Object.entries<Protocol>(PROTOCOLS))("%s", (kind, protocol) => {
  const { reply, odd } = protocol;

  test("vouches for a caller of its issuer, with groups and audiences, for no longer than cached", async () => {
    const zoe = { sub: "zoe", groups: ["ops"], aud: ["orders"] };
    const { verify, observed, clock } = await opened(protocol, () => reply(zoe));
    expect(await verify("good")).toMatchObject({
      claims: {
        subject: "zoe",
        groups: ["ops"],
        issuer: "elsewhere",
        claims: new Map([["aud", ["orders"]]]),
      },
      until: clock.now() + 30_000,
    });
    expect(observed).toEqual([`${kind} elsewhere true`]);
  });

  test("vouches for a caller while the server is away, for staleFor, and not beyond the token", async () => {
    const answer: { reply: RemoteReply } = { reply: reply({ sub: "zoe" }) };
    const { verify, observed, clock } = await opened(protocol, () => answer.reply, 5_000, 60_000);
    await verify("good");
    answer.reply = { status: 500, body: {} };
    clock.advance(31_000);
    const verdict = await verify("good");
    expect(verdict).toMatchObject({ claims: { subject: "zoe" }, until: clock.now() + 1_000 });
    expect(observed.at(-1)).toBe("stale");
    expect(await verify("another")).toBe("keys_unusable");
    clock.advance(60_000);
    expect(await verify("good")).toBe("keys_unusable");
  });

  test("forgets a caller whom the server has refused", async () => {
    const answer: { reply: RemoteReply } = { reply: reply({ sub: "zoe" }) };
    const { verify, clock } = await opened(protocol, () => answer.reply, 5_000, 60_000);
    await verify("good");
    answer.reply = reply(undefined);
    clock.advance(31_000);
    expect(await verify("good")).toMatchObject({ reason: "inactive" });
    answer.reply = { status: 500, body: {} };
    clock.advance(6_000);
    expect(await verify("good")).toBe("keys_unusable");
  });

  test("asks about exactly the token, and never in the URL", async () => {
    const { verify, server } = await opened(protocol, () => reply({ sub: "zoe" }));
    await verify("a+b/c.d_e-f~==");
    const [asked] = server.asked;
    expect(asked && protocol.tokenIn(asked)).toBe("a+b/c.d_e-f~==");
    expect(asked?.url).not.toContain("d_e");
    expect(JSON.stringify(asked?.headers)).not.toContain("d_e");
    expect(await verify("not a token")).toMatchObject({ reason: "malformed" });
    expect(server.asked).toHaveLength(1);
  });

  test("refuses a token that the server does not know, and asks once", async () => {
    const { verify, server, observed } = await opened(protocol, () => reply(undefined));
    expect(await verify("bad")).toMatchObject({ reason: "inactive" });
    expect(await verify("bad")).toMatchObject({ reason: "inactive" });
    expect(server.asked).toHaveLength(1);
    expect(observed).toEqual([`${kind} elsewhere false`]);
  });

  test.each([undefined, "", 7, "a\u0000b", "x".repeat(256)])(
    "refuses a caller without a usable name: %j",
    async (sub) => {
      const { verify } = await opened(protocol, () => reply({ sub }));
      expect(await verify("nameless")).toMatchObject({ step: "claims", reason: "malformed" });
    },
  );

  const unusable: readonly RemoteReply[] = [
    { status: 500 },
    { status: 401 },
    { status: 302 },
    { body: "<html>" },
    { body: "[]" },
    { body: {} },
    { body: '{"active":false,"active":true,"status":{},"status":{}}' },
    { body: " ".repeat(70_000) },
    "reset",
  ];
  test.each([...unusable, ...odd])("can decide nothing by the answer %j", async (answer) => {
    let current = answer;
    const { verify, observed } = await opened(protocol, () => current);
    expect(await verify("token")).toBe("keys_unusable");
    expect(observed).toHaveLength(1);
    current = reply({ sub: "zoe" });
    expect(await verify("token")).toMatchObject({ claims: { subject: "zoe" } });
  });

  test("can decide nothing without an answer in time", async () => {
    const { verify, observed } = await opened(protocol, () => "hang", 50);
    expect(await verify("token")).toBe("keys_unusable");
    expect(observed).toEqual(["no answer in time"]);
  });

  test("is asked about JWTs unless it takes only opaque tokens", async () => {
    const { verification, settings } = await opened(protocol, () => reply(undefined));
    expect(verification.takes(true)).toBe(true);
    expect(verification.takes(false)).toBe(tokenCheckOf(settings)?.opaqueOnly === false);
  });

  test("can be probed with a text that is no token", async () => {
    let answer = reply(undefined);
    const { settings, server } = await opened(protocol, () => answer);
    const probe = tokenCheckOf(settings)?.probe("nothing");
    if (probe === undefined) throw new Error("there is no probe");
    expect(probe.url).toBe(server.url);
    expect(probe.hint).not.toBe("");
    expect(await probe.ask(AbortSignal.timeout(5_000))).toBeUndefined();
    expect(server.asked.map(protocol.tokenIn)).toEqual(["nothing"]);
    answer = { status: 500 };
    await expect(probe.ask(AbortSignal.timeout(5_000))).rejects.toThrow("status 500");
  });
});
