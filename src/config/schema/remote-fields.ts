import { z } from "zod";
import { isSafeRemoteUrl, SAFE_REMOTE_URL } from "../../lib/http/remote-request.ts";
import { duration, filePath, text } from "./fields.ts";

/** The fields of every server that Sallyport queries about a request. */

const ONE_HOUR = 3_600_000;
const ONE_MINUTE = 60_000;

/** The URL of a server whose responses are trusted. */
export function remoteUrl() {
  return text()
    .refine((url) => !url.includes("#"), "must have no fragment: the part after # is never sent")
    .refine((url) => url.includes("#") || isSafeRemoteUrl(url), SAFE_REMOTE_URL);
}

/** The fields for requests to such a server, except its URL. */
export function remoteAccess() {
  return {
    caFile: filePath({ readAgainBy: "reader" })
      .exactOptional()
      .describe("Authorities for the server's certificate, PEM; default: Node's"),
    tokenFile: filePath({ readAgainBy: "request" })
      .exactOptional()
      .describe("File with the bearer token for the server; reread when it changes"),
  };
}

/** The timeout of a response, and how long it is cached. */
export function remoteTimes({
  timeout,
  cache,
  kind,
}: {
  timeout: string;
  cache: string;
  kind?: string;
}) {
  const of = kind === undefined ? "" : ` (kind ${kind})`;
  return {
    timeout: duration({ max: ONE_MINUTE })
      .prefault(timeout)
      .describe(`Time for the server's answer${of}`),
    cache: duration({ min: 0, max: ONE_HOUR })
      .prefault(cache)
      .describe(`How long to cache a yes${of}; a no is cached for 5s at most`),
  };
}

/** The API server of Kubernetes. */
export function apiServer() {
  return remoteUrl().default("https://kubernetes.default.svc").describe("URL of the API server");
}

/** What an authorization server's failure means for a request. */
export const onError = () =>
  z
    .enum(["unavailable", "deny"])
    .default("unavailable")
    .describe("Response to a request if the server cannot decide: 503 (unavailable) or 403 (deny)");
