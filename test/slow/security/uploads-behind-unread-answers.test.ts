/**
 * Uploads of clients that do not take answers. Over HTTP/2, a client with an initial window of 0 takes no byte of an
 * answer's body. A proxy that ends a request by an answer, and the request to the backend when that answer is complete,
 * passes on such an upload long after the token was revoked, or any limit was exceeded.
 *
 * Sallyport ends the request to the backend first. It then answers, and gives the client a second to take that.
 */
import { randomUUID } from "node:crypto";
import { chmod } from "node:fs/promises";
import { createServer } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import type { Readable } from "node:stream";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { ask } from "../../support/ask.ts";
import { byKey, compact } from "../../support/compact-token.ts";
import { editConfiguration } from "../../support/edits.ts";
import { END_HEADERS, FRAME, frame, FrameClient, headerBlock } from "../../support/http2-frames.ts";
import { listening } from "../../support/listening.ts";
import { logLine } from "../../support/log-line.ts";
import { openSocket, request } from "../../support/raw-client.ts";
import { type Sallyport, startSallyport } from "../../support/sallyport.ts";
import { scrape } from "../../support/scrape.ts";
import { temporaryDirectory } from "../../support/temporary-directory.ts";
import { claims, header, OWN, seconds } from "../../support/token-gate.ts";
import { until } from "../../support/until.ts";

/** Within one second, with slack for a busy machine. */
const SOON_MS = 2_500;
const REQUEST_TIMEOUT_MS = 6_000;
/** The lifetime of a token that expires during its upload, in seconds. */
const SHORT_S = 4;
const EVERY_MS = 50;
/** SETTINGS_INITIAL_WINDOW_SIZE 0. */
const NO_WINDOW = frame(FRAME.settings, 0, 0, Buffer.from([0, 4, 0, 0, 0, 0]));

/** An upload as a backend sees it. */
interface Arriving {
  lastByteAt: number;
  closedAt: number | undefined;
}
const arriving = new Map<string, Arriving>();

function follow(path: string, body: Readable): void {
  const seen: Arriving = { lastByteAt: 0, closedAt: undefined };
  arriving.set(path, seen);
  body.on("data", () => (seen.lastByteAt = Date.now()));
  body.on("error", () => undefined).on("close", () => (seen.closedAt = Date.now()));
}

const stack = new AsyncDisposableStack();
afterAll(() => stack.disposeAsync());
let gate: Sallyport;
let hasty: Sallyport;
beforeAll(async () => {
  const http1 = stack.use(await listening(createServer((sent) => follow(sent.url ?? "", sent))));
  const http2 = createHttp2Server().on("stream", (stream, headers) =>
    follow(String(headers[":path"]), stream),
  );
  const h2c = stack.use(await listening(http2));
  const keys = stack.use(await temporaryDirectory());
  const pem = OWN.privateKey.export({ format: "pem", type: "pkcs8" });
  await chmod(await keys.write("own.pem", pem), 0o600);
  const start = (timeouts: object) =>
    startSallyport({
      target: http1.url,
      withoutToken: true,
      config: {
        server: { tls: "off", http2: true, workers: 1, timeouts },
        tokens: { keys: keys.path, revocation: { logout: true } },
        routes: [
          { name: "http2", path: "/http2/", upstream: "h2c" },
          { name: "http1", path: "/", upstream: "app" },
        ],
        upstreams: { h2c: { targets: [h2c.url], protocol: "h2c" } },
      },
    });
  gate = stack.use(await start({}));
  hasty = stack.use(await start({ request: `${REQUEST_TIMEOUT_MS}ms` }));
});

/** A request with an upload that goes on, and whose client takes no answer. */
interface Upload {
  readonly bearer: { readonly authorization: string };
  /** When the token expires. */
  readonly exp: number;
  readonly began: number;
  readonly arriving: Arriving;
}

type Start = (to: Sallyport, path: string, authorization: string) => Promise<() => boolean>;

const startOverHttp2: Start = async (to, path, authorization) => {
  const client = await FrameClient.connect(to);
  onTestFinished(() => client[Symbol.asyncDispose]());
  const head = [
    [":method", "POST"],
    [":scheme", "http"],
    [":authority", "localhost"],
    [":path", path],
    ["authorization", authorization],
  ] as const;
  client.send(NO_WINDOW, frame(FRAME.headers, END_HEADERS, 1, headerBlock(head)));
  const timer = setInterval(() => client.send(frame(FRAME.data, 0, 1, Buffer.from("x"))), EVERY_MS);
  onTestFinished(() => clearInterval(timer));
  return () => client.of(FRAME.reset).length > 0;
};

const startOverHttp1: Start = async (to, path, authorization) => {
  const socket = await openSocket(to);
  let closed = false;
  socket.on("error", () => undefined).on("close", () => (closed = true));
  socket.pause();
  const fields = ["Host: localhost", "Transfer-Encoding: chunked"];
  socket.write(request([`POST ${path} HTTP/1.1`, ...fields, `Authorization: ${authorization}`]));
  const timer = setInterval(() => socket.write("1\r\nx\r\n"), EVERY_MS);
  onTestFinished(() => {
    clearInterval(timer);
    socket.destroy();
  });
  return () => closed;
};

const WAYS: [name: string, end: (upload: Upload) => Promise<number>, reason: string][] = [
  [
    "a logout",
    async ({ bearer }) => {
      const answer = await ask(gate, "/api/logout", { method: "POST", headers: bearer });
      expect(answer.status).toBe(200);
      return Date.now();
    },
    "revoked",
  ],
  ["the expiry of its token", async ({ exp }) => exp * 1000, "token_expired"],
  ["server.timeouts.request", async ({ began }) => began + REQUEST_TIMEOUT_MS, "request_timeout"],
  [
    "a reload that no longer allows it",
    async () => {
      await editConfiguration(gate, ({ routes }) => {
        for (const route of routes) route["require"] = { groups: { any: ["bosses"] } };
      });
      await logLine(gate, { msg: "the configuration was reloaded" });
      return Date.now();
    },
    "no_longer_allowed",
  ],
];

const CLIENTS: [string, Start][] = [
  ["over HTTP/2 with a window of 0", startOverHttp2],
  ["over HTTP/1.1 that does not read", startOverHttp1],
];

describe.each(WAYS)("%s", (name, end, reason) => {
  it("ends the uploads of clients that take no answer", async () => {
    const to = reason === "request_timeout" ? hasty : gate;
    const uploads = CLIENTS.flatMap(([client, start]) =>
      ["/http1/", "/http2/"].map(async (prefix) => {
        const jti = randomUUID();
        const path = prefix + jti;
        const exp = seconds() + (reason === "token_expired" ? SHORT_S : 600);
        const token = compact(header(), claims({ jti, exp }), byKey(OWN.privateKey));
        const began = Date.now();
        const isCut = await start(to, path, `Bearer ${token}`);
        await until(() => (arriving.get(path)?.lastByteAt ?? 0) > 0);
        const seen = arriving.get(path);
        if (seen === undefined) throw new Error("nothing has arrived");
        const bearer = { authorization: `Bearer ${token}` };
        return { client, path, isCut, upload: { bearer, exp, began, arriving: seen } };
      }),
    );
    for (const { client, path, isCut, upload } of await Promise.all(uploads)) {
      const what = `${name}: ${client}, ${path}`;
      const endedAt = await end(upload);
      await until(() => upload.arriving.closedAt !== undefined, 15_000);
      expect(upload.arriving.lastByteAt - endedAt, what).toBeLessThan(SOON_MS);
      if (client.includes("HTTP/2")) {
        await until(isCut);
        expect(Date.now() - endedAt, what).toBeLessThan(2 * SOON_MS + REQUEST_TIMEOUT_MS);
      }
      await logLine(to, { path, reason });
    }
    const { value } = await scrape(to);
    expect(value("sallyport_http_requests_in_flight")).toBe(0);
  }, 60_000);
});
