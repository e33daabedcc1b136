/**
 * An HTTP/2 backend that answers completely and opens no window for the body that it did not want. The body waits in Node for a
 * window that never comes: without a reset, the stream and its bytes stay as long as the connection.
 */
import { expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { startEchoBackend } from "../support/echo-backend.ts";
import * as h2 from "../support/raw-http2-backend.ts";
import { useSharedSallyport } from "../support/shared-sallyport.ts";
import { until } from "../support/until.ts";

const part = useSharedSallyport({ config: { server: { http2: true, workers: 1 } } });

const INITIAL_WINDOW = 4;

/** Answers each request as soon as its head has arrived, and reads no body. */
const startUnwilling = (): Promise<h2.RawHttp2Backend> =>
  h2.startRawHttp2Backend(
    ({ type, stream }, socket) => {
      if (type === h2.HEADERS) socket.write(h2.answer(stream));
    },
    h2.settings([INITIAL_WINDOW, 0]),
  );

const resets = (backend: h2.RawHttp2Backend): number[] =>
  backend.frames.filter(({ type }) => type === h2.RST_STREAM).map(({ stream }) => stream);

const unwilling = part(async (stack) => {
  const backend = stack.use(await startUnwilling());
  const upstream = { targets: [backend.url], protocol: "h2c" };
  return { backend, upstream, route: { auth: "none" } };
});

it("has the stream reset, whether the body came in one piece or not", async () => {
  const { backend, gate, path } = unwilling();
  for (const body of ["four", "x".repeat(40_000)]) {
    const before = resets(backend).length;
    expect(await ask(gate, path("/x"), { method: "POST", body })).toMatchObject({ status: 200 });
    await until(() => resets(backend).length > before, 3_000);
  }
});

const mirrored = part(async (stack) => {
  const backend = stack.use(await startUnwilling());
  const original = stack.use(await startEchoBackend());
  const upstreams = { copies: { targets: [backend.url], protocol: "h2c" } };
  const upstream = { targets: [original.url] };
  return { backend, upstream, upstreams, route: { auth: "none", mirror: { upstream: "copies" } } };
});

it("has the stream of a copy reset, too", async () => {
  const { backend, gate, path } = mirrored();
  await ask(gate, path("/x"), { method: "POST", body: "four" });
  await until(() => resets(backend).length > 0, 3_000);
});
