import { z } from "zod";
import { isSafeRemoteUrl, SAFE_REMOTE_URL } from "../../lib/http/safe-remote-url.ts";
import { duration, filePath, text } from "./fields.ts";

/** The fields of every server that is asked about a request. */

const ONE_HOUR = 3_600_000;
const ONE_MINUTE = 60_000;

/** An address whose answers are trusted. */
export function remoteUrl() {
  return text()
    .refine((url) => !url.includes("#"), "must have no fragment: what is behind # is never sent")
    .refine((url) => url.includes("#") || isSafeRemoteUrl(url), SAFE_REMOTE_URL);
}

/** What is needed to ask a server, besides its address. */
export function remoteAccess() {
  return {
    caFile: filePath({ readAgainBy: "reader" })
      .exactOptional()
      .describe("Authorities that its certificate may come from, instead of Node's; PEM"),
    tokenFile: filePath({ readAgainBy: "request" })
      .exactOptional()
      .describe("Bearer token to show to it; read again when it changes"),
  };
}

/** How long an answer may take, and how long it is remembered. */
export function remoteTimes({
  timeout,
  cache,
  of = "it",
}: {
  timeout: string;
  cache: string;
  of?: string;
}) {
  return {
    timeout: duration({ max: ONE_MINUTE })
      .prefault(timeout)
      .describe(`How long an answer of ${of} may take`),
    cache: duration({ min: 0, max: ONE_HOUR })
      .prefault(cache)
      .describe(`How long a yes of ${of} is remembered; a no for 5s at most`),
  };
}

/** The API server of Kubernetes. */
export function apiServer() {
  return remoteUrl()
    .default("https://kubernetes.default.svc")
    .describe("Address of the API server");
}

export const onError = () =>
  z
    .enum(["unavailable", "deny"])
    .default("unavailable")
    .describe("What a request gets that nobody can decide about: 503, or 403");
