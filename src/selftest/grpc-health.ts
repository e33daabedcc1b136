import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";

/** The call by which proxies look whether a backend of gRPC is well (grpc.health.v1). */
const CHECK = "/grpc.health.v1.Health/Check";
/** A message that is not compressed, of two bytes: field 1, `status`, is 1, SERVING. */
const SERVING = Buffer.from([0, 0, 0, 0, 2, 0x08, 0x01]);

export function asksForHealth({ url }: Http2ServerRequest): boolean {
  return url === CHECK;
}

/** Says that everything is well. */
export function answerHealth(response: Http2ServerResponse): void {
  response.setHeader("content-type", "application/grpc");
  response.addTrailers({ "grpc-status": "0" });
  response.end(SERVING);
}
