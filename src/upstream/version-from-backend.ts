import { GateError } from "../core/errors.ts";
import { VERSION_FORM, type VersionSource } from "../core/version-source.ts";
import type { Clock } from "../lib/clock.ts";
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

/** Asks the backend, with a connection of its own, and believes the answer for ten seconds. */
export function backendVersion(
  options: BackendVersionOptions,
): VersionSource & { close(): Promise<void> } {
  const { upstream, path, field, clock } = options;
  const { tls, timeouts } = upstream;
  const address = upstream.targets[0] ?? "";
  const target = createTarget({ address, tls, timeouts, connections: 1 });
  let believed = { version: "", until: Number.NEGATIVE_INFINITY };

  async function ask(): Promise<string> {
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
    if (typeof version !== "string" || !VERSION_FORM.test(version)) {
      throw new GateError("version_unavailable", { reason: "version_malformed" });
    }
    return version;
  }

  return {
    async current() {
      const now = clock.monotonic();
      if (now < believed.until) return believed.version;
      try {
        believed = { version: await ask(), until: now + BELIEVED_MS };
        return believed.version;
      } catch (error) {
        if (error instanceof GateError) throw error;
        throw new GateError("version_unavailable", { reason: "version_unreachable", cause: error });
      }
    },
    close: () => target.pool.close(),
  };
}

async function limitedText(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > MAX_BYTES)
      throw new GateError("version_unavailable", { reason: "version_malformed" });
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
