import type { Expectation } from "./check-result.ts";
import { chunked, request, type Target } from "./deployment.ts";
import { refused } from "./expectations.ts";

/** How requests are written and refused in one version of HTTP. Fields are written `Name: value`. */
export interface RequestWriter {
  /** Returns the bytes of a GET. */
  get(target: Target, path: string, fields: readonly string[]): string;
  /** Returns the bytes of a POST with a body of four bytes. */
  post(
    target: Target,
    path: string,
    fields: readonly string[],
    trailers?: readonly string[],
  ): string;
  /** Returns the bytes of a request to open a WebSocket. */
  webSocket(target: Target, path: string, fields: readonly string[]): string;
  /** What such a request is called. */
  readonly webSocketName: "upgrade" | "WebSocket";
  readonly refused: Expectation;
}

const UPGRADE = [
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];

export const HTTP1: RequestWriter = {
  get: ({ host }, path, fields) =>
    request([`GET ${path} HTTP/1.1`, `Host: ${host}`, ...fields, "Connection: close"]),
  post({ host }, path, fields, trailers) {
    const head = [`POST ${path} HTTP/1.1`, `Host: ${host}`, ...fields, "Connection: close"];
    return trailers === undefined
      ? request([...head, "Content-Length: 4"], "body")
      : request(
          [...head, "Transfer-Encoding: chunked", "Trailer: X-Selftest"],
          chunked("body", trailers),
        );
  },
  webSocket: ({ host }, path, fields) =>
    request([`GET ${path} HTTP/1.1`, `Host: ${host}`, ...fields, ...UPGRADE]),
  webSocketName: "upgrade",
  refused,
};
