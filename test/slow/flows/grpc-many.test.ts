/** Many concurrent gRPC calls, and a stream of many messages. */
import { connect } from "node:http2";
import { expect, test } from "vitest";
import { endOf, grpcClient, startGrpcBackend } from "../../support/grpc.ts";
import { startHttp2Backend } from "../../support/http2-backend.ts";
import { startSallyport } from "../../support/sallyport.ts";
import { until } from "../../support/until.ts";

const STREAMS = 1_000;

test(
  "a thousand concurrent streams use one connection on each side",
  { timeout: 60_000 },
  async () => {
    await using backend = await startHttp2Backend(
      ({ stream }) => {
        stream.respond({ ":status": 200 }, { waitForTrailers: true });
        stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
        stream.pipe(stream);
      },
      { settings: { maxConcurrentStreams: 2_000 } },
    );
    await using gate = await startSallyport({
      target: backend.url,
      config: {
        server: { http2: true, limits: { streams: STREAMS } },
        upstreams: { app: { protocol: "h2c", connections: 2_000 } },
      },
    });
    const session = connect(`https://localhost:${gate.port}`, { ca: gate.ca });
    const ends: string[] = [];
    const streams = Array.from({ length: STREAMS }, (_, index) => {
      const stream = session.request(
        {
          ":method": "POST",
          ":path": "/public/x",
          "content-type": "application/grpc",
          te: "trailers",
        },
        { endStream: false },
      );
      let text = "";
      stream.on("data", (chunk: Buffer) => (text += String(chunk)));
      stream.on("trailers", (fields) =>
        ends.push(`${String(fields["grpc-status"])} ${text === `message ${index}`}`),
      );
      stream.write(`message ${index}`);
      return stream;
    });
    await until(() => backend.requests.length === STREAMS, 30_000);
    expect(backend.sessions).toHaveLength(1);
    for (const stream of streams) stream.end();
    await until(() => ends.length === STREAMS, 30_000);
    expect(new Set(ends)).toEqual(new Set(["0 true"]));
    session.destroy();
  },
);

test("an hour's worth of messages passes", { timeout: 120_000 }, async () => {
  await using backend = await startGrpcBackend();
  await using gate = await startSallyport({
    target: backend.url,
    config: { server: { http2: true }, upstreams: { app: { protocol: "h2c" } } },
  });
  const client = grpcClient(gate);
  let count = 0;
  // Fifty per second for an hour.
  const download = client.download(180_000, { token: gate.token }).on("data", () => (count += 1));
  expect((await endOf(download)).details).toBe("OK");
  expect(count).toBe(180_000);
  client.close();
});
