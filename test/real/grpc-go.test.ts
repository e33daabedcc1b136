/** Go's gRPC on both ends: google.golang.org/grpc from the Go module proxy. The program is in go-grpc/. */
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { buildGo, GO_BUILD_MS } from "../support/go-program.ts";
import { runProgram, startProgram } from "../support/program.ts";
import { startSallyport } from "../support/sallyport.ts";
import { temporaryDirectory, type TemporaryDirectory } from "../support/temporary-directory.ts";
import { until } from "../support/until.ts";

const SOURCES = join(import.meta.dirname, "go-grpc");

const stack = new AsyncDisposableStack();
let directory: TemporaryDirectory;
let program = "";
/** Why nothing can be tested, if so. */
let reason: string | undefined;

beforeAll(async () => {
  directory = stack.use(await temporaryDirectory());
  reason = await buildGo(SOURCES, directory.path);
  program = join(directory.path, "program");
}, GO_BUILD_MS);
afterAll(() => stack.disposeAsync());

it("passes all kinds of calls, cancellations by either side, and a thousand streams on one connection", async ({
  skip,
}) => {
  if (reason !== undefined) return skip(reason);
  const server = stack.use(startProgram(program, ["server"]));
  await until(() => /^\d+\n/.test(server.output()), 20_000);
  const port = server.output().trim();
  const gate = stack.use(
    await startSallyport({
      target: `http://127.0.0.1:${port}`,
      config: {
        server: { http2: true, limits: { streams: 1_000 } },
        upstreams: {
          app: {
            protocol: "h2c",
            connections: 2_000,
            // The same backend twice, since health checks require several targets.
            targets: [`http://127.0.0.1:${port}`, `http://localhost:${port}`],
            balance: "first",
            health: { kind: "grpc", service: "test.Go", interval: "200ms", healthy: 1 },
          },
        },
        routes: [
          { name: "calls", path: "/test.Go/", upstream: "app" },
          { name: "health", path: "/grpc.health.v1.Health/", upstream: "app", auth: "none" },
        ],
      },
    }),
  );
  const ca = await directory.write("ca.pem", gate.ca ?? "");
  const client = await runProgram(
    program,
    ["client", String(gate.port), ca, gate.token],
    "",
    90_000,
  );
  expect(client.err).toBe("");
  expect(client.out.split("\n")).toEqual([
    "without a token: Unauthenticated",
    "client: messages 100",
    "end: EOF [[alice]]",
    "server: 5000 EOF",
    "both: messages 100",
    "cancelled by the client: Canceled",
    "ended by the server: Aborted the server ends it: ü",
    "deadline: DeadlineExceeded",
    "at once: 1000",
    "health: SERVING",
    expect.stringMatching(/^state: connections [12], cancelled 2$/),
    "",
  ]);
  const { body } = await ask({ port: gate.adminPort }, "/-/upstreams");
  expect(JSON.parse(body).targets[0]).toMatchObject({ protocol: "h2c", state: "available" });
}, 120_000);
