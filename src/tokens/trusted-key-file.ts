import { ConfigError } from "../core/config-problem.ts";
import { codeOrMessage } from "../lib/error-code.ts";
import { parsePositionedYaml } from "../lib/positioned-yaml.ts";
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
  { log, changed, reloaded }: TrustedKeysContext,
): KeySource {
  let known: JwkSet;
  const broken = (error: unknown, content?: Buffer): void => {
    log.error("The keys of a trusted issuer cannot be read again, the old ones stay", {
      ...{ issuer, file, ...(content && placeOfFault(content, file)) },
      reason: codeOrMessage(error),
    });
    reloaded?.(false);
  };
  const watched = openFile(file, {
    changed(content) {
      const before = known;
      try {
        known = read(content);
      } catch (error) {
        broken(error, content);
        return;
      }
      reloaded?.(true);
      if (known.fingerprint !== before.fingerprint) changed();
    },
    unreadable: broken,
  });
  try {
    known = read(watched.content);
  } catch (error) {
    watched.close();
    const place = placeOfFault(watched.content, file);
    const message = `The keys cannot be used: ${codeOrMessage(error)}`;
    throw new ConfigError([{ file, ...place, message }]);
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
    throw new ConfigError([{ file, message: `The file cannot be read: ${codeOrMessage(error)}` }]);
  }
}

/** Where a broken text is broken, as far as the reader of YAML can tell: JSON is YAML, but for what is nested too deeply. */
function placeOfFault(
  content: Buffer,
  file: string,
): { readonly line: number; readonly column: number } | undefined {
  const [problem] = parsePositionedYaml(content.toString("utf8"), file).problems;
  return problem && { line: problem.line, column: problem.column };
}
