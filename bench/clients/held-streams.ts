/**
 * Opens HTTP/2 streams over TLS, each with a request whose answer begins and never ends, and holds them until the process is
 * killed. Takes the options as JSON in the first argument, and prints "holding" and the number of streams when all are open.
 */
import { connect, type ClientHttp2Session } from "node:http2";
import { GRPC_PATH } from "../load/h2load.ts";
import type { HeldStreams } from "../load/held-streams.ts";

const held: HeldStreams = JSON.parse(process.argv[2] ?? "{}");
const { port, ca, token, connections, streams, grpc } = held;
const request = {
  ...(grpc
    ? { ":method": "POST", ":path": GRPC_PATH, "content-type": "application/grpc", te: "trailers" }
    : { ":method": "GET", ":path": "/held" }),
  authorization: `Bearer ${token}`,
};

function fail(error: Error): void {
  console.error(error.message);
  process.exit(1);
}

/** Resolves when the answer has begun. */
async function openOne(session: ClientHttp2Session): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  const stream = session.request(request, { endStream: !grpc });
  stream.once("response", (head) => resolve(head[":status"])).once("error", reject);
  const status = await promise;
  if (status !== 200) throw new Error(`the answer was ${String(status)}`);
  stream.on("close", () => fail(new Error("closed too early"))).resume();
}

let open = 0;
for (let index = 0; index < connections; index++) {
  const session = connect(`https://127.0.0.1:${port}`, { ca }).on("error", fail);
  await Promise.all(Array.from({ length: streams }, () => openOne(session)));
  open += streams;
}
console.log(`holding ${open}`);
