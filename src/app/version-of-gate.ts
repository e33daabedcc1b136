import type { Configuration } from "../config/schema.ts";
import type { VersionSource } from "../core/version-source.ts";
import { fileVersion, fixedVersion } from "../server/version-sources.ts";
import type { UpstreamOptions } from "../upstream/upstreams.ts";
import { backendVersion } from "../upstream/version-from-backend.ts";
import type { GateOptions } from "./gate.ts";

/** Where the version comes from, and what must be closed when it is done with. */
export interface OpenVersionSource {
  readonly source: VersionSource;
  close(): Promise<void>;
}

/** The upstream that is asked for it, where one is. */
export function askedForVersion(
  { version }: Configuration,
  upstreams: readonly UpstreamOptions[],
): UpstreamOptions | undefined {
  if (version === undefined || !("upstream" in version)) return undefined;
  return upstreams.find(({ name }) => name === version.upstream);
}

/** @param upstream the one that `askedForVersion` has found. */
export function versionSourceOf(
  { configuration, version: own, clock }: GateOptions,
  upstream: UpstreamOptions | undefined,
): OpenVersionSource {
  const { version = { text: own } } = configuration;
  if ("upstream" in version) {
    const { path, field } = version;
    if (upstream === undefined) throw new Error(`there is no upstream ${version.upstream}`);
    const source = backendVersion({ upstream, path, field, clock });
    return { source, close: () => source.close() };
  }
  return { source: localVersion(version), close: () => Promise.resolve() };
}

function localVersion(
  version: { readonly text: string } | { readonly env: string } | { readonly file: string },
): VersionSource {
  if ("text" in version) return fixedVersion(version.text);
  return "file" in version
    ? fileVersion(version.file)
    : fixedVersion(process.env[version.env] ?? "");
}
