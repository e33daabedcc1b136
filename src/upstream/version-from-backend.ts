import { GateError } from "../core/errors.ts";
import { VERSION_FORM, type VersionSource } from "../core/version-source.ts";
import type { Clock } from "../lib/clock.ts";
import { SingleFlight } from "../lib/single-flight.ts";
import { isJsonObject, parseStrictJson } from "../lib/strict-json.ts";
import { createTarget } from "./target.ts";
import type { UpstreamOptions } from "./upstreams.ts";

/** How long an answer is believed, in milliseconds. */
const BELIEVED_MS = 10_000;
const MAX_BYTES = 64 * 1024;

export interface BackendVersionOptions {
  readonly upstream: UpstreamOptions;
  /** Canonical path of the backend's own version. */
  readonly path: string;
  /** Name of the field in the backend's JSON answer. */
  readonly field: string;
  readonly clock: Clock;
}

/**
 * Asks the backend, with a connection of its own, and believes the answer for ten seconds. Those who ask at the same time
 * share one question.
 */
export function backendVersion(
  options: BackendVersionOptions,
): VersionSource & { close(): Promise<void> } {
  const { upstream, path, field, clock } = options;
  const { tls, timeouts } = upstream;
  const address = upstream.targets[0] ?? "";
  const target = createTarget({ address, tls, timeouts, connections: 1 });
  const flights = new SingleFlight<string>();
  let believed = { version: "", until: Number.NEGATIVE_INFINITY };

  async function ask(): Promise<string> {
    const until = clock.monotonic() + BELIEVED_MS;
    const { protocol, hostname, port } = target.origin;
    const host = hostname.includes(":") ? `[${hostname}]` : hostname;
    // Late: nobody else needs the index of undici, which loads much more than this.
    const { request } = await import("undici");
    const answer = await request(`${protocol}//${host}:${port}${path}`, {
      dispatcher: target.pool,
      headers: { accept: "application/json" },
    });
    const text = await limitedText(answer.body);
    const value: unknown = answer.statusCode === 200 ? parseStrictJson(text) : undefined;
    const version = isJsonObject(value) && Object.hasOwn(value, field) ? value[field] : undefined;
    if (typeof version !== "string" || !VERSION_FORM.test(version)) throw malformed();
    believed = { version, until };
    return version;
  }

  return {
    async current() {
      if (clock.monotonic() < believed.until) return believed.version;
      try {
        return await flights.run("ask", ask);
      } catch (error) {
        if (error instanceof GateError) throw error;
        // Without the error, whose words are from the answer.
        if (error instanceof SyntaxError) throw malformed();
        throw new GateError("version_unavailable", { reason: "version_unreachable", cause: error });
      }
    },
    // What a silent backend still owes is not waited for: a stop would outlast its limit.
    close: () => target.pool.destroy(),
  };
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
