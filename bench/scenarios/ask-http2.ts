import { connect } from "node:http2";
import { buffer } from "node:stream/consumers";
import { GRPC_REQUEST } from "../backends/grpc-answer.ts";
import { GRPC_PATH } from "../load/h2load.ts";
import type { Question, Reply } from "./ask.ts";

/** The HTTP status for the gRPC status of a call. */
const STATUS: Readonly<Record<string, number>> = { "0": 200, "7": 403, "16": 401 };

/**
 * Sends one request over HTTP/2 on a new connection, or one unary gRPC call, whose status is mapped to HTTP. Rejects if no
 * answer arrives within ten seconds.
 */
export async function askHttp2(question: Question, grpc: boolean): Promise<Reply> {
  const { port, ca, path, token } = question;
  const session = connect(`${ca === undefined ? "http" : "https"}://127.0.0.1:${port}`, { ca });
  const failed = Promise.withResolvers<never>();
  session.once("error", failed.reject);
  try {
    const stream = session.request(
      {
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(grpc
          ? { ":method": "POST", ":path": GRPC_PATH, te: "trailers" }
          : { ":method": "GET", ":path": path }),
        ...(grpc && { "content-type": "application/grpc" }),
      },
      { signal: AbortSignal.timeout(10_000) },
    );
    let received: Readonly<Record<string, unknown>> = {};
    for (const event of ["response", "trailers"]) {
      stream.on(event, (fields: object) => (received = { ...received, ...fields }));
    }
    stream.end(grpc ? GRPC_REQUEST : undefined);
    const body = (await Promise.race([buffer(stream), failed.promise])).toString("latin1");
    const status = grpc ? STATUS[String(received["grpc-status"])] : Number(received[":status"]);
    return { status: status ?? 0, body };
  } finally {
    session.destroy();
  }
}
