import { GateError } from "../core/request/errors.ts";
import { VERSION_FORM, type VersionSource } from "../core/version-source.ts";
import type { Clock } from "../lib/clock.ts";
import { sharedFor } from "../lib/async/single-flight.ts";
import { jsonObjectIn } from "../lib/text/strict-json.ts";
import { sendQueryOnce } from "./http2/query.ts";
import { openPool } from "./pool/open-pool.ts";
import { firstOriginOf } from "./pool/target-list.ts";
import type { UpstreamOptions } from "./pool/upstreams.ts";

/** How long a version is cached, in milliseconds. */
const CACHE_MS = 10_000;
/** Maximum size of the backend's response, in bytes. */
const MAX_BYTES = 64 * 1024;

export interface BackendVersionOptions {
  readonly upstream: UpstreamOptions;
  /** Canonical path of the backend's own version. */
  readonly path: string;
  /** The name of the field in the backend's JSON response. */
  readonly field: string;
  readonly clock: Clock;
}

/**
 * Queries the backend over a connection of its own, and caches the version for ten seconds. Concurrent calls share
 * one query.
 */
export function openBackendVersion(
  options: BackendVersionOptions,
): VersionSource & { close(): Promise<void> } {
  const { upstream, path, field, clock } = options;
  const { timeouts, protocol } = upstream;
  const origin = firstOriginOf(upstream);
  const closing = new AbortController();
  const query = sharedFor(CACHE_MS, clock, async () => {
    const limit = AbortSignal.any([closing.signal, AbortSignal.timeout(timeouts.response)]);
    const pool = openPool(origin, protocol, timeouts.connect);
    const headers = ["Host", origin.authority, "Accept", "application/json"];
    const asked = { method: "GET", path, headers } as const;
    const { status, body } = await sendQueryOnce(pool, asked, limit, MAX_BYTES + 1);
    const isComplete = status === 200 && body.length <= MAX_BYTES;
    const value = isComplete ? jsonObjectIn(body.toString()) : undefined;
    const version = value !== undefined && Object.hasOwn(value, field) ? value[field] : undefined;
    if (typeof version !== "string" || !VERSION_FORM.test(version)) {
      throw new GateError("version_unavailable", { reason: "version_malformed" });
    }
    return version;
  });

  return {
    async current() {
      try {
        return await query();
      } catch (error) {
        if (error instanceof GateError) throw error;
        throw new GateError("version_unavailable", { reason: "version_unreachable", cause: error });
      }
    },
    // Does not wait for a silent backend, which would exceed the time limit of a stop.
    async close() {
      closing.abort();
    },
  };
}
