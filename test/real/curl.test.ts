import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fieldsOf } from "../support/ask.ts";
import { startEchoBackend, type EchoBackend } from "../support/echo-backend.ts";
import { echoedBy } from "../support/echoed.ts";
import { missing, runProgram, startProgram } from "../support/program.ts";
import { ALICE, startSallyport, type Sallyport } from "../support/sallyport.ts";
import { until } from "../support/until.ts";
import { startWebSocketBackend } from "../support/websocket.ts";
import { temporaryDirectory, type TemporaryDirectory } from "../support/temporary-directory.ts";

const reason = missing("curl");

describe.skipIf(reason !== undefined)(`with curl ${reason ?? ""}`, () => {
  const stack = new AsyncDisposableStack();
  let directory: TemporaryDirectory;
  let backend: EchoBackend;
  let gate: Sallyport;
  beforeAll(async () => {
    directory = stack.use(await temporaryDirectory());
    backend = stack.use(await startEchoBackend());
    const sockets = stack.use(await startWebSocketBackend());
    const upstreams = { app: { targets: [backend.url] }, sockets: { targets: [sockets.url] } };
    const routes = [
      { name: "sockets", path: "/sockets", upstream: "sockets" },
      { name: "everything", path: "/", upstream: "app" },
    ];
    const started = startSallyport({ target: backend.url, config: { upstreams, routes } });
    gate = stack.use(await started);
    await directory.write("ca.crt", gate.ca ?? "");
  });
  afterAll(() => stack.disposeAsync());

  const common = (): string[] => ["--silent", "--show-error", "--cacert", ca(), "--noproxy", "*"];
  const ca = (): string => join(directory.path, "ca.crt");
  const url = (path: string): string => `https://localhost:${gate.port}${path}`;
  const bearer = (token: string): string[] => ["--header", `Authorization: Bearer ${token}`];
  const here = (): string[] => ["--resolve", `localhost:${gate.port}:127.0.0.1`];
  const curl = (...args: string[]) => runProgram("curl", [...common(), ...here(), ...args]);

  it("logs in, gets the version and reaches the backend", async () => {
    const login = await curl(
      ...["--header", "Content-Type: application/json", "--data", JSON.stringify(ALICE)],
      url("/api/authenticate"),
    );
    const { token, success } = fieldsOf({ body: login.out });
    expect(success).toBe(true);
    const version = await curl(...bearer(String(token)), url("/api/v1/version"));
    expect(fieldsOf({ body: version.out })["version"]).toMatch(/^\d+\.\d+\.\d+$/);
    const orders = await curl(...bearer(String(token)), url("/orders?page=2"));
    expect(echoedBy({ body: orders.out }).url).toBe("/orders?page=2");
    expect(echoedBy({ body: orders.out }).header("x-auth-subject")).toBe("alice");
    const refused = await curl("--output", "/dev/null", "--write-out", "%{http_code}", url("/"));
    expect(refused.out).toBe("401");
  });

  it("uploads a large file with Expect: 100-continue", async () => {
    const file = await directory.write("large.bin", Buffer.alloc(5 * 1024 * 1024, "x"));
    const headers = ["--header", "Expect: 100-continue", "--expect100-timeout", "20"];
    const upload = await curl(...bearer(gate.token), ...headers, "--upload-file", file, url("/up"));
    expect(echoedBy({ body: upload.out })).toMatchObject({ method: "PUT", bodyLength: 5_242_880 });
  });

  it("receives Server-Sent Events as they are sent", async () => {
    const args = [...common(), ...here(), ...bearer(gate.token), "--no-buffer", url("/sse")];
    await using watching = startProgram("curl", args);
    await until(() => backend.listeners() === 1);
    for (const event of ["one", "two", "three"]) {
      backend.emitEvent(event);
      await until(() => watching.output().endsWith(`data: ${event}\n\n`));
      expect(watching.exited()).toBe(false);
    }
    backend.emitEvent(undefined);
    await until(() => watching.exited());
    expect(watching.output()).toBe("data: one\n\ndata: two\n\ndata: three\n\n");
  });

  it("ends the backend's stream when it disconnects", async () => {
    const args = [...common(), ...here(), ...bearer(gate.token), "--no-buffer", url("/sse")];
    const watching = startProgram("curl", args);
    await until(() => backend.listeners() === 1);
    await watching[Symbol.asyncDispose]();
    await until(() => backend.listeners() === 0);
  });

  const upgrade = [
    ...["--include", "--no-buffer", "--http1.1", "--header", "Connection: Upgrade"],
    ...["--header", "Upgrade: websocket", "--header", "Sec-WebSocket-Version: 13"],
    ...["--header", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="],
  ];

  it("switches to a WebSocket with a token", async () => {
    // curl prints response fields immediately only in its trace.
    const args = [...common(), ...here(), ...bearer(gate.token), "--verbose", ...upgrade];
    await using switched = startProgram("curl", [...args, url("/sockets")]);
    await until(() => switched.output().includes("HTTP/1.1 101 "));
    // The sample key and its response are from RFC 6455 §1.3.
    await until(() =>
      /sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=/i.test(switched.output()),
    );
    expect(switched.exited()).toBe(false);
  });

  it("gets an ordinary 401 for a WebSocket without one", async () => {
    const { out } = await curl(...upgrade, url("/sockets"));
    expect(out).toMatch(/^HTTP\/1\.1 401 /);
    expect(fieldsOf({ body: out.split("\r\n\r\n")[1] ?? "" })["success"]).toBe(false);
  });
});
