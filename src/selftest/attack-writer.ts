import type { Expectation } from "./check-result.ts";
import { request, type Target } from "./deployment.ts";
import { refused } from "./expectations.ts";

/** How requests are written and refused in one version of HTTP. */
export interface RequestWriter {
  /** Returns the bytes of a GET. @param fields `Name: value`. */
  readonly get: (target: Target, path: string, fields: readonly string[]) => string;
  readonly refused: Expectation;
}

export const HTTP1: RequestWriter = {
  get: ({ host }, path, fields) =>
    request([`GET ${path} HTTP/1.1`, `Host: ${host}`, ...fields, "Connection: close"]),
  refused,
};
