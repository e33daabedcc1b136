/** gRPC through Sallyport, with the official library on both ends. */
import { status } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { endOf, type GrpcBackend, grpcClient, startGrpcBackend } from "../support/grpc.ts";
import { connectHttp2 } from "../support/http2-client.ts";
import { ask, fieldsOf } from "../support/ask.ts";
import { closedPort } from "../support/dead-ends.ts";
import { logLine } from "../support/log-line.ts";
import { exchange, request } from "../support/raw-client.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";
import { until } from "../support/until.ts";

const ROUTES = [
  { name: "grpc", path: "/test.Echo/", upstream: "app" },
  { name: "sales", path: "/sales.Only/", upstream: "app", require: { groups: { any: ["admin"] } } },
  { name: "gone", path: "/gone.Service/", upstream: "gone" },
];

describe("calls", () => {
  let backend: GrpcBackend;
  let gate: Sallyport;
  let client: ReturnType<typeof grpcClient>;
  let token: string;

  beforeAll(async () => {
    backend = await startGrpcBackend();
    gate = await startSallyport({
      target: backend.url,
      config: {
        server: { http2: true },
        routes: ROUTES,
        upstreams: {
          app: { protocol: "h2c" },
          gone: { protocol: "h2c", targets: [`http://127.0.0.1:${await closedPort()}`] },
        },
      },
    });
    client = grpcClient(gate);
    ({ token } = gate);
  });
  afterAll(async () => {
    client.close();
    await gate.close();
    await backend[Symbol.asyncDispose]();
  });

  test("unary calls pass the backend's trailers and errors", async () => {
    const { text, trailers } = await client.unary("hello", { token });
    expect([text, trailers?.get("x-behind")]).toEqual(["hello", ["yes"]]);
    expect(backend.calls.at(-1)?.get("x-auth-subject")).toEqual(["alice"]);
    const { error } = await client.unary("fail", { token });
    expect(error).toMatchObject({ code: status.FAILED_PRECONDITION, details: "not like this: ü" });
  });

  test("client, server and bidirectional streams pass", async () => {
    const parts = Array.from({ length: 200 }, () => Buffer.alloc(10_000));
    expect(await client.upload(parts, { token })).toBe("2000000");
    let count = 0;
    const download = client.download(5_000, { token }).on("data", () => (count += 1));
    expect((await endOf(download)).code).toBe(status.OK);
    expect(count).toBe(5_000);
    const both = client.both({ token });
    const seen: string[] = [];
    both.on("data", (message: Buffer) => seen.push(String(message)));
    for (let sent = 1; sent <= 3; sent += 1) {
      both.write(Buffer.from(`ping ${sent}`));
      await until(() => seen.length === sent, 5_000);
    }
    both.end();
    expect(await endOf(both)).toMatchObject({ code: status.OK });
    expect(seen).toEqual(["ping 1", "ping 2", "ping 3"]);
  });

  test("refusals are gRPC statuses", async () => {
    expect((await client.unary("x")).error).toMatchObject({
      code: status.UNAUTHENTICATED,
      details: "Full authentication is required to access this resource",
    });
    expect(await refusedWith(gate, token, "/sales.Only/Call")).toEqual([
      200,
      "7",
      "application/grpc",
    ]);
    expect(await refusedWith(gate, token, "/gone.Service/Call")).toEqual([
      200,
      "14",
      "application/grpc",
    ]);
    expect(await refusedWith(gate, undefined, "/test.Echo/Unary")).toEqual([
      200,
      "16",
      "application/grpc",
    ]);
    // The log has the HTTP status.
    await until(
      () =>
        gate
          .log()
          .some(({ path, status: logged }) => path === "/sales.Only/Call" && logged === 403),
      5_000,
    );
  });

  test("the client's deadline ends a call", async () => {
    const begun = performance.now();
    const code = await refusedWith(
      gate,
      token,
      "/test.Echo/Unary",
      { "grpc-timeout": "200m" },
      message("hang"),
    );
    expect(code).toEqual([200, "4", "application/grpc"]);
    expect(performance.now() - begun).toBeGreaterThan(150);
    await until(() => backend.cancelled() > 0, 5_000);
  });

  test("the client's deadline is no failure of the upstream or of Sallyport", async () => {
    for (const limit of ["1n", "20m"]) {
      await refusedWith(
        ...[gate, token, "/test.Echo/Unary", { "grpc-timeout": limit }, message("hang")],
      );
    }
    const { reason, status: logged } = await logLine(gate, { reason: "deadline_exceeded" });
    expect([reason, logged]).toEqual(["deadline_exceeded", 408]);
    const { body } = await ask({ port: gate.adminPort }, "/metrics");
    expect(body).not.toMatch(/^sallyport_upstream_errors_total\{upstream="app".*\} [1-9]/m);
    expect(body).not.toMatch(/^sallyport_http_requests_total\{route="grpc".*code="5.*\} [1-9]/m);
  });

  test("a request over HTTP/1.1 that claims to be gRPC gets real statuses", async () => {
    const grpc = { "content-type": "application/grpc", "grpc-timeout": "1n" };
    const tell = (path: string, bearer?: string, method = "POST") =>
      ask(gate, path, {
        method,
        headers: grpc,
        body: "x",
        ...(bearer === undefined ? {} : { token: bearer }),
      });
    const refused = await tell("/test.Echo/Unary");
    expect([refused.status, refused.headers["grpc-status"]]).toEqual([401, undefined]);
    expect(fieldsOf(refused)).toMatchObject({ success: false });
    expect((await tell("/sales.Only/Call", token)).status).toBe(403);
    expect((await tell("/gone.Service/Call", token)).status).toBe(502);
    const broken = await exchange(
      gate,
      request([
        ...["POST /test.Echo/Unary HTTP/1.1", "Content-Type: application/grpc"],
        ...["Host: a", "Host: b", "Content-Length: 0"],
      ]),
    );
    expect(broken.last.status).toBe(400);
  });

  test("cancelling reaches the backend", async () => {
    const before = backend.cancelled();
    const both = client.both({ token });
    const ended = endOf(both);
    both.write(Buffer.from("one"));
    await new Promise((resolve) => void both.once("data", resolve));
    both.cancel();
    expect((await ended).code).toBe(status.CANCELLED);
    await until(() => backend.cancelled() > before, 5_000);
  });
});

test("a backend that dies ends a stream with UNAVAILABLE", async () => {
  await using backend = await startGrpcBackend();
  await using gate = await startSallyport({
    target: backend.url,
    config: { server: { http2: true }, upstreams: { app: { protocol: "h2c" } } },
  });
  const client = grpcClient(gate);
  const both = client.both({ token: gate.token });
  const ended = endOf(both);
  both.write(Buffer.from("one"));
  await new Promise((resolve) => void both.once("data", resolve));
  both.write(Buffer.from("die"));
  expect((await ended).code).toBe(status.UNAVAILABLE);
  client.close();
});

test("targets are checked with grpc.health.v1", async () => {
  await using one = await startGrpcBackend();
  await using two = await startGrpcBackend();
  one.health.status = 2;
  await using gate = await startSallyport({
    target: one.url,
    config: {
      server: { http2: true },
      upstreams: {
        app: {
          protocol: "h2c",
          targets: [one.url, two.url],
          health: { kind: "grpc", service: "a.B", interval: "100ms", unhealthy: 1, healthy: 1 },
        },
      },
    },
  });
  const logged = (msg: string) => gate.log().find((line) => line["msg"] === msg);
  await until(() => logged("a target is left out") !== undefined, 5_000);
  expect(logged("a target is left out")).toMatchObject({
    target: one.url,
    why: "health check: not serving",
  });
  expect(one.health.asked[0]).toBe("\n\u0003a.B");
  const client = grpcClient(gate);
  for (let sent = 0; sent < 4; sent += 1) {
    expect((await client.unary("x", { token: gate.token })).text).toBe("x");
  }
  expect([one.calls.length, two.calls.length]).toEqual([0, 4]);
  one.health.status = 1;
  await until(() => logged("a target is used again") !== undefined, 5_000);
  client.close();
});

/** Calls with a plain HTTP/2 client. @returns the status, `grpc-status` and media type of the response. */
async function refusedWith(
  gate: Sallyport,
  token: string | undefined,
  path: string,
  more: Record<string, string> = {},
  body = message("x"),
): Promise<unknown[]> {
  await using client = await connectHttp2(gate);
  const {
    status: code,
    headers,
    trailers,
  } = await client.ask(
    {
      ":method": "POST",
      ":path": path,
      "content-type": "application/grpc+proto",
      te: "trailers",
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...more,
    },
    body,
  );
  expect(trailers).toEqual({});
  return [code, headers["grpc-status"], String(headers["content-type"]).replace("+proto", "")];
}

/** Frames a gRPC message. */
function message(text: string): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(text.length, 1);
  return Buffer.concat([head, Buffer.from(text)]);
}
