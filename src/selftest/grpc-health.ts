import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";

/** The gRPC call with which proxies check the health of a backend (grpc.health.v1). */
const CHECK = "/grpc.health.v1.Health/Check";
/** An uncompressed message of two bytes: field 1, `status`, is 1, SERVING. */
const SERVING = Buffer.from([0, 0, 0, 0, 2, 0x08, 0x01]);

export function asksForHealth({ url }: Http2ServerRequest): boolean {
  return url === CHECK;
}

/** Responds that the backend is healthy. */
export function answerHealth(response: Http2ServerResponse): void {
  response.setHeader("content-type", "application/grpc");
  response.addTrailers({ "grpc-status": "0" });
  response.end(SERVING);
}
