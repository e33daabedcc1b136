import type { Configuration } from "../../config/schema/configuration-schema.ts";
import type { VersionSource } from "../../core/version-source.ts";
import { fileVersion, fixedVersion } from "../../server/endpoints/version-endpoint.ts";
import type { UpstreamOptions } from "../../upstream/pool/upstream-options.ts";
import { openBackendVersion } from "../../upstream/version-from-backend.ts";
import type { GateOptions } from "./gate-options.ts";

/** A version source that must be closed after use. */
export interface OpenVersionSource extends VersionSource {
  close(): Promise<void>;
}

/** Returns the upstream that provides the version, if any. */
export function askedForVersion(
  { version }: Configuration,
  upstreams: readonly UpstreamOptions[],
): UpstreamOptions | undefined {
  if (version === undefined || !("upstream" in version)) return undefined;
  return upstreams.find(({ name }) => name === version.upstream);
}

/** Opens the configured source of the version. @param upstream the result of `askedForVersion`. */
export function openVersionSource(
  { configuration, version: own, clock }: GateOptions,
  upstream: UpstreamOptions | undefined,
): OpenVersionSource {
  const { version = { text: own } } = configuration;
  if ("upstream" in version) {
    if (upstream === undefined) throw new Error(`there is no upstream ${version.upstream}`);
    return openBackendVersion({ ...version, upstream, clock });
  }
  const local =
    "file" in version
      ? fileVersion(version.file)
      : fixedVersion("text" in version ? version.text : (process.env[version.env] ?? ""));
  return { ...local, close: () => Promise.resolve() };
}
