import { GateError } from "../core/request/errors.ts";
import { VERSION_FORM, type VersionSource } from "../core/version-source.ts";
import type { Clock } from "../lib/clock.ts";
import { SingleFlight } from "../lib/async/single-flight.ts";
import { isJsonObject, parseStrictJson } from "../lib/text/strict-json.ts";
import { originOf, type TargetOrigin } from "./pool/target-origin.ts";
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
  const { tls, timeouts } = upstream;
  const origin = originOf(upstream.targets[0] ?? "", tls);
  let opening: ReturnType<typeof openPool> | undefined;
  const flights = new SingleFlight<string>();
  let cached = { version: "", until: Number.NEGATIVE_INFINITY };

  async function query(): Promise<string> {
    const until = clock.monotonic() + CACHE_MS;
    const { protocol, hostname, port } = origin;
    const host = hostname.includes(":") ? `[${hostname}]` : hostname;
    // Imported on demand: nothing else needs the index of undici, which loads much more than this.
    const { request } = await import("undici");
    opening ??= openPool(origin, timeouts.connect);
    const answer = await request(`${protocol}//${host}:${port}${path}`, {
      dispatcher: await opening,
      headers: { accept: "application/json" },
      signal: AbortSignal.timeout(timeouts.response),
    });
    const text = await limitedText(answer.body);
    const value: unknown = answer.statusCode === 200 ? parseStrictJson(text) : undefined;
    const version = isJsonObject(value) && Object.hasOwn(value, field) ? value[field] : undefined;
    if (typeof version !== "string" || !VERSION_FORM.test(version)) throw malformed();
    cached = { version, until };
    return version;
  }

  return {
    async current() {
      if (clock.monotonic() < cached.until) return cached.version;
      try {
        return await flights.run("query", query);
      } catch (error) {
        if (error instanceof GateError) throw error;
        // The error is left out, since its message quotes the response.
        if (error instanceof SyntaxError) throw malformed();
        throw new GateError("version_unavailable", { reason: "version_unreachable", cause: error });
      }
    },
    // Does not wait for a silent backend, which would exceed the time limit of a stop.
    async close() {
      await (await opening)?.destroy();
    },
  };
}

async function openPool(origin: TargetOrigin, connectMs: number) {
  const { createPool } = await import("./http/undici-pool.ts");
  return createPool(origin, { connectMs, connections: 1 });
}

async function limitedText(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > MAX_BYTES) throw malformed();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function malformed(): GateError {
  return new GateError("version_unavailable", { reason: "version_malformed" });
}
