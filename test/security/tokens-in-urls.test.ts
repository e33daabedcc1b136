/**
 * Tokens that leave with a copy of the URL. A token in a query is in the URL of a page, which browsers repeat in the
 * `Referer` of everything that the page loads, on other routes, too; proxies repeat it in `X-Original-URI`, and libraries
 * in headers of their own. The backend and the mirror see none of them, and answers ask browsers not to send any.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { connectHttp2 } from "../support/http2-client.ts";
import { connectTunnel } from "../support/http2-websocket.ts";
import { valuesOf } from "../support/http-reader.ts";
import { logLine } from "../support/log-line.ts";
import { useNaiveProxy } from "../support/pair.ts";
import { type RawBackend, startRawBackend } from "../support/raw-backend.ts";
import { exchange, request } from "../support/raw-client.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";
import { until } from "../support/until.ts";

const OWN_POLICY = {
  write: "HTTP/1.1 200 OK\r\nReferrer-Policy: origin\r\nContent-Length: 2\r\n\r\nok",
};
const mirror = { upstream: "shadow" };
const routes = [
  { name: "page", path: "/page", upstream: "app", tokenFrom: [{ query: "access_token" }], mirror },
  { name: "assets", path: "/assets", upstream: "app", auth: "none", mirror },
  { name: "rest", path: "/", upstream: "app" },
];

/** By name: what is sent, with T for the token, and what arrives. */
const COPIES: readonly (readonly [name: string, sent: string, arrives: string])[] = [
  ["Referer", "https://localhost/page?access_token=T", "https://localhost/page"],
  [
    "Referer",
    "https://localhost/page?a=1&access_token=T&b=%2F",
    "https://localhost/page?a=1&b=%2F",
  ],
  ["Referer", "https://localhost/page?%61ccess_token=T&b=", "https://localhost/page?b="],
  ["Referer", "https://localhost/page?a=?access_token=T", "https://localhost/page?a="],
  ["Referer", "https://localhost/login?rd=%2Fpage%3Faccess_token%3DT", "https://localhost/login"],
  [
    "Referer",
    "https://localhost/page?a=1&my_access_token=1",
    "https://localhost/page?a=1&my_access_token=1",
  ],
  ["X-Original-URI", "/page?x=1&access_token=T", "/page?x=1"],
  [
    "X-Original-URL",
    "https%3A%2F%2Flocalhost%2Fpage%3Faccess_token%3DT",
    "https%3A%2F%2Flocalhost%2Fpage",
  ],
  ["X-Forwarded-Uri", "/page?access_token=T, /page?access_token=T", "/page"],
  ["HX-Current-URL", "https://localhost/page?access_token=T", "https://localhost/page"],
  ["Ping-From", "https://localhost/page?access_token=T", "https://localhost/page"],
];

const UPGRADE = [
  ...["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"],
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];

describe("Sallyport", () => {
  const stack = new AsyncDisposableStack();
  let app: RawBackend;
  let shadow: RawBackend;
  let gate: Sallyport;
  beforeAll(async () => {
    app = stack.use(await startRawBackend());
    shadow = stack.use(await startRawBackend());
    const upstreams = { app: { targets: [app.url] }, shadow: { targets: [shadow.url] } };
    const trustedHeaders = ["X-Original-URI", "X-Original-URL", "X-Forwarded-Uri"];
    const server = { http2: true, trustedProxies: ["127.0.0.1"], trustedHeaders };
    const log = { fields: { uri: "header:X-Original-URI", referer: "header:Referer" } };
    gate = stack.use(
      await startSallyport({ target: app.url, config: { server, upstreams, routes, log } }),
    );
  });
  afterAll(() => stack.disposeAsync());
  beforeEach(() => {
    for (const backend of [app, shadow]) {
      backend.forget();
      backend.answerWith(undefined);
    }
  });

  type Send = (path: string, name: string, value: string) => Promise<number>;
  const overHttp1 =
    (more: readonly string[]): Send =>
    async (path, name, value) => {
      const head = [`GET ${path} HTTP/1.1`, "Host: localhost", ...more, `${name}: ${value}`];
      return (await exchange(gate, request(head))).last.status;
    };
  const ways: readonly (readonly [string, boolean, Send])[] = [
    ["HTTP/1.1", true, overHttp1([])],
    ["a WebSocket", false, overHttp1(UPGRADE)],
    [
      "HTTP/2",
      true,
      async (path, name, value) => {
        await using client = await connectHttp2(gate);
        return (await client.ask({ ":path": path, [name.toLowerCase()]: value })).status;
      },
    ],
    [
      "a WebSocket over HTTP/2",
      false,
      async (path, name, value) => {
        await using client = await connectHttp2(gate);
        return (await connectTunnel(client, path, { [name.toLowerCase()]: value })).status;
      },
    ],
  ];

  describe.each(ways)("over %s", (_way, mirrors, send) => {
    it.each(COPIES)("passes on the %s %s as %s", async (name, sent, arrives) => {
      const value = sent.replaceAll("T", gate.token);
      for (const path of [`/page/x?access_token=${gate.token}&c=1`, "/assets/x.png"]) {
        app.forget();
        shadow.forget();
        expect(await send(path, name, value)).toBe(200);
        if (mirrors) await until(() => shadow.requests().length === 1);
        for (const seen of [...app.requests(), ...shadow.requests()]) {
          expect(valuesOf(seen.headers, name.toLowerCase())).toEqual([arrives]);
          expect(JSON.stringify(seen)).not.toContain(gate.token);
        }
        expect(app.requests()).toHaveLength(1);
      }
    });
  });

  it("logs no query of a URL", async () => {
    const more = ["Referer: https://localhost/page?access_token=opaque-secret"];
    const uri = "/page?access_token=opaque-secret";
    expect(await overHttp1(more)("/assets/logged", "X-Original-URI", uri)).toBe(200);
    const line = await logLine(gate, { path: "/assets/logged" });
    expect(line).toMatchObject({ uri: "/page", referer: "https://localhost/page" });
  });

  const policyOf = async (target: string, ...more: string[]): Promise<string | undefined> => {
    const head = [`GET ${target} HTTP/1.1`, "Host: localhost", ...more];
    return (await exchange(gate, request(head))).last.header("referrer-policy");
  };

  it("asks browsers not to send the URL", async () => {
    const target = `/page?access_token=${gate.token}`;
    expect(await policyOf(target)).toBe("no-referrer");
    app.answerWith(() => OWN_POLICY);
    expect(await policyOf(target)).toBe("origin");
  });

  it("asks so in its own answers, too", async () => {
    expect(await policyOf("/page?access_token=forged")).toBe("no-referrer");
    expect(await policyOf("/page")).toBe("no-referrer");
    expect(await policyOf(`/page?access_token=${gate.token}`, "Expect: more")).toBe("no-referrer");
    app.answerWith(() => ({ write: "not http", then: "close" }));
    expect(await policyOf(`/page?access_token=${gate.token}`)).toBe("no-referrer");
  });

  it("leaves the answers of other routes to their backends", async () => {
    expect(await policyOf("/assets/x")).toBeUndefined();
    app.answerWith(() => OWN_POLICY);
    expect(await policyOf("/assets/x")).toBe("origin");
  });
});

describe("Sallyport without tokens in queries", () => {
  it("changes neither Referer nor answers", async () => {
    await using app = await startRawBackend();
    await using gate = await startSallyport({ target: app.url, withoutToken: true });
    const referer = "https://localhost/?access_token=1&a=?access_token=2";
    const head = ["GET /public/x HTTP/1.1", "Host: localhost", `Referer: ${referer}`];
    const { last } = await exchange(gate, request(head));
    expect(last.header("referrer-policy")).toBeUndefined();
    expect(valuesOf(app.requests()[0]?.headers ?? [], "referer")).toEqual([referer]);
    const refused = await exchange(gate, request(["GET /x HTTP/1.1", "Host: localhost"]));
    expect(refused.last.header("referrer-policy")).toBeUndefined();
  });
});

describe("a naive proxy", () => {
  const standing = useNaiveProxy();

  it("passes the token on in the Referer", async () => {
    const { gate, backend } = standing();
    const referer = "Referer: https://localhost/page?access_token=secret";
    await exchange(gate, request(["GET /public/x HTTP/1.1", "Host: localhost", referer]));
    expect(JSON.stringify(backend.requests())).toContain("secret");
  });
});
