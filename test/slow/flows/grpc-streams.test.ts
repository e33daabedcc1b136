/**
 * The lifetime of gRPC streams, with timeouts scaled down 600 times: the request timeout is 500 ms instead of 5 min.
 */
import { status } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { endOf, type GrpcBackend, grpcClient, startGrpcBackend } from "../../support/grpc.ts";
import { connectHttp2, type Http2Client } from "../../support/http2-client.ts";
import { type EchoBackend, startEchoBackend } from "../../support/echo-backend.ts";
import { ALICE, type Sallyport, startSallyport } from "../../support/sallyport.ts";
import { until } from "../../support/until.ts";

const REQUEST_MS = 500;
/** An hour is twelve times five minutes. */
const HOUR_MS = 12 * REQUEST_MS;
const IDLE_MS = 4_000;
const EVERY_MS = 50;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe("server.timeouts.request", () => {
  const stack = new AsyncDisposableStack();
  let backend: GrpcBackend;
  let plain: EchoBackend;
  let gate: Sallyport;
  let client: ReturnType<typeof grpcClient>;
  let bare: Http2Client;
  beforeAll(async () => {
    backend = stack.use(await startGrpcBackend());
    plain = stack.use(await startEchoBackend());
    const timeouts = { response: "1m", idle: `${IDLE_MS}ms` };
    gate = stack.use(
      await startSallyport({
        target: plain.url,
        config: {
          server: { http2: true, timeouts: { request: `${REQUEST_MS}ms` } },
          upstreams: { grpc: { protocol: "h2c", targets: [backend.url], timeouts } },
          routes: [
            { name: "grpc", path: "/test.Echo/", upstream: "grpc" },
            { name: "plain", path: "/", upstream: "app", auth: "none" },
          ],
        },
      }),
    );
    client = grpcClient(gate);
    bare = stack.use(await connectHttp2(gate));
    stack.defer(() => client.close());
  });
  afterAll(() => stack.disposeAsync());

  /** Sends a body slowly. @returns the HTTP and gRPC statuses, and after how many milliseconds they arrived. */
  async function dribble(path: string, more: Record<string, string>) {
    const begun = performance.now();
    const stream = bare.open(
      {
        ":method": "POST",
        ":path": path,
        authorization: `Bearer ${gate.token}`,
        "content-type": "application/grpc",
        te: "trailers",
        ...more,
      },
      { endStream: false },
    );
    stream.on("error", () => undefined).resume();
    const timer = setInterval(() => void stream.write("x"), EVERY_MS);
    const headers = await new Promise<Readonly<Record<string, unknown>>>((resolve) => {
      stream.once("response", resolve);
    });
    clearInterval(timer);
    stream.close();
    const ms = performance.now() - begun;
    return { status: headers[":status"], grpc: headers["grpc-status"], ms };
  }

  it("does not end client or bidirectional streams while messages arrive", async () => {
    const both = client.both({ token: gate.token });
    const ended = endOf(both);
    let echoed = 0;
    both.on("data", () => (echoed += 1));
    const parts = Math.ceil(HOUR_MS / EVERY_MS);
    const upload = client.uploadSlowly(parts, EVERY_MS, { token: gate.token });
    for (let sent = 0; sent < parts; sent += 1) {
      both.write(Buffer.from("ping"));
      await pause(EVERY_MS);
    }
    both.end();
    expect((await ended).code).toBe(status.OK);
    expect(echoed).toBe(parts);
    expect(await upload).toBe(String(parts));
  });

  it("leaves silent streams to timeouts.idle", async () => {
    const both = client.both({ token: gate.token });
    const ended = endOf(both);
    both.write(Buffer.from("one"));
    await new Promise((resolve) => void both.once("data", resolve));
    const begun = performance.now();
    const cancelled = backend.cancelled();
    expect((await ended).code).toBe(status.DEADLINE_EXCEEDED);
    expect(performance.now() - begun).toBeGreaterThan(IDLE_MS - 200);
    await until(() => backend.cancelled() > cancelled, 5_000);
    const silent = client.uploadSlowly(2, 60_000, { token: gate.token });
    await expect(silent).rejects.toMatchObject({ code: status.DEADLINE_EXCEEDED });
  });

  it("leaves streams with a deadline to that deadline", async () => {
    const both = client.both({ token: gate.token, deadline: 1_000 });
    const ended = endOf(both);
    const timer = setInterval(() => void both.write(Buffer.from("x")), EVERY_MS);
    both.on("data", () => undefined);
    expect((await ended).code).toBe(status.DEADLINE_EXCEEDED);
    clearInterval(timer);
  });

  it("limits other bodies: with a length, to an HTTP/1.1 backend, or with another media type", async () => {
    const length = { "content-length": "1000" };
    for (const [path, more, answer] of [
      ["/test.Echo/Client", length, { status: 200, grpc: "4" }],
      ["/plain", {}, { status: 200, grpc: "4" }],
      ["/plain", { "content-type": "text/plain" }, { status: 408, grpc: undefined }],
    ] as const) {
      const { ms, ...got } = await dribble(path, more);
      expect(got).toEqual(answer);
      expect(ms).toBeGreaterThan(REQUEST_MS - 50);
      expect(ms).toBeLessThan(IDLE_MS);
    }
  });
});

it("a stream ends when its token expires", async () => {
  await using backend = await startGrpcBackend();
  await using gate = await startSallyport({
    target: backend.url,
    config: {
      server: { http2: true },
      tokens: { lifetime: "2s" },
      upstreams: { app: { protocol: "h2c" } },
    },
  });
  const client = grpcClient(gate);
  const token = await gate.login(ALICE.username, ALICE.password);
  const both = client.both({ token });
  const ended = endOf(both);
  both.write(Buffer.from("one"));
  await new Promise((resolve) => void both.once("data", resolve));
  expect((await ended).code).toBe(status.UNAUTHENTICATED);
  await until(() => backend.cancelled() > 0, 5_000);
  client.close();
});
