import { ConfigError } from "../core/config-problem.ts";
import { watchFile, type WatchedFile } from "../lib/watched-file.ts";
import { type JwkSet, readJwkSet } from "./jwk-set.ts";
import type { KeySource } from "./key-set.ts";
import type { TrustedIssuer, TrustedKeysContext } from "./trusted-issuer.ts";

/**
 * The keys of a JWK Set file. It is read again when it changes; a broken one keeps the old keys and says so.
 * Throws `ConfigError` when the file cannot be used at the start.
 */
export function openTrustedKeyFile(
  file: string,
  { issuer, algorithms }: TrustedIssuer,
  { log, changed }: TrustedKeysContext,
): KeySource {
  let known: JwkSet;
  const broken = (reason: string): void =>
    log.error("The keys of a trusted issuer cannot be read again, the old ones stay", {
      issuer,
      file,
      reason,
    });
  const watched = openFile(file, {
    changed(content) {
      try {
        const latest = read(content);
        if (latest.fingerprint === known.fingerprint) return;
        known = latest;
      } catch (error) {
        broken(reasonOf(error));
        return;
      }
      changed();
    },
    unreadable: (error) => broken(reasonOf(error)),
  });
  try {
    known = read(watched.content);
  } catch (error) {
    watched.close();
    throw new ConfigError([{ file, message: `The keys cannot be used: ${reasonOf(error)}` }]);
  }

  function read(content: Buffer): JwkSet {
    const set = readJwkSet(content.toString("utf8"), algorithms);
    log.info("Keys of a trusted issuer were loaded", { issuer, keys: set.keys.length });
    if (set.ignored.length > 0) {
      log.warn("Some keys of a trusted issuer were left out", { issuer, reasons: set.ignored });
    }
    return set;
  }

  return {
    current: () => known.keys,
    refresh: () => Promise.resolve(),
    close: () => watched.close(),
  };
}

function openFile(file: string, watching: Parameters<typeof watchFile>[1]): WatchedFile {
  try {
    return watchFile(file, watching);
  } catch (error) {
    throw new ConfigError([{ file, message: `The file cannot be read: ${reasonOf(error)}` }]);
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  return "code" in error ? String(error.code) : error.message;
}
