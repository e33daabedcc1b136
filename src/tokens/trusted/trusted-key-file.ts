import { ConfigError } from "../../core/config-problem.ts";
import { codeOrMessage } from "../../lib/text/error-code.ts";
import type { Log } from "../../core/log.ts";
import {
  type FileContent,
  readFailure,
  readRegularFileSync,
} from "../../lib/files/regular-file.ts";
import { parsePositionedYaml } from "../../lib/files/positioned-yaml.ts";
import { followFile } from "../../lib/files/watched-file.ts";
import { type JwkSet, type KeySource, readJwkSet } from "../keys/key-set.ts";
import type { Reloaded } from "../../core/status.ts";
import type { ClaimMapping } from "../../core/request/token-verifier.ts";
import type { Clock } from "../../lib/clock.ts";
import type { AsymmetricAlgorithm } from "../keys/algorithms.ts";

/** The content of a JWK Set file as plain data for other threads. */
export type TrustedKeyContent = Pick<FileContent, "path" | "text" | "fingerprint">;

/** Reads a JWK Set file. @throws ConfigError if it cannot be read. */
export function readTrustedKeyFile(path: string): TrustedKeyContent {
  try {
    return readRegularFileSync(path);
  } catch (error) {
    throw new ConfigError([{ file: path, message: unreadable(readFailure(error)) }]);
  }
}

/** Says that a JWK Set file cannot be read. */
export function unreadable(why: string): string {
  return `the file cannot be read: ${why}`;
}

/**
 * The keys of a JWK Set file, which is read again when it changes. A broken file keeps the old keys and logs the error.
 *
 * @throws ConfigError if the content is invalid.
 */
export function openTrustedKeyFile(
  content: TrustedKeyContent,
  { issuer, algorithms }: TrustedIssuer,
  { clock, log, changed, reloaded }: TrustedKeysContext,
): KeySource {
  const { path: file } = content;
  const broken = (error: unknown, content?: FileContent): void => {
    const reason = codeOrMessage(error);
    log.error("the keys of a trusted issuer cannot be reloaded: the old keys stay in use", {
      issuer,
      file,
      ...(content && placeOfFault(content)),
      reason,
    });
    reloaded?.([`${file}: the keys cannot be used: ${reason}`]);
  };
  let known = readTrustedKeys(content, algorithms);
  let readAt: number;
  loaded();
  const followed = followFile(file, content.fingerprint, {
    onChange(content) {
      const before = known;
      try {
        known = readJwkSet(content.text, algorithms);
      } catch (error) {
        broken(error, content);
        return;
      }
      loaded();
      reloaded?.([]);
      if (known.fingerprint !== before.fingerprint) changed();
    },
    onUnreadable: broken,
  });

  function loaded(): void {
    readAt = clock.now();
    logLoaded(issuer, known, log);
  }

  return {
    current: () => known.keys,
    readAt: () => readAt,
    refresh: () => Promise.resolve(),
    close: () => followed.close(),
  };
}

function logLoaded(issuer: string, { keys, ignored }: JwkSet, log: Log): void {
  log.info("the keys of a trusted issuer were loaded", { issuer, keys: keys.length });
  if (ignored.length > 0) {
    log.warn("some keys of a trusted issuer were ignored", { issuer, reasons: ignored });
  }
}

/**
 * Returns the keys of a JWK Set file.
 *
 * @throws ConfigError, with the position if the text is not valid.
 */
export function readTrustedKeys(
  content: Pick<FileContent, "path" | "text">,
  algorithms: TrustedIssuer["algorithms"],
): JwkSet {
  try {
    return readJwkSet(content.text, algorithms);
  } catch (error) {
    const message = `the keys cannot be used: ${codeOrMessage(error)}`;
    throw new ConfigError([{ file: content.path, ...placeOfFault(content), message }]);
  }
}

/**
 * Returns the position of a syntax error as far as the YAML parser can tell: JSON is YAML, unless it is nested too
 * deeply.
 */
function placeOfFault({
  path,
  text,
}: Pick<FileContent, "path" | "text">):
  | { readonly line: number; readonly column: number }
  | undefined {
  const [problem] = parsePositionedYaml(text, path).problems;
  return problem && { line: problem.line, column: problem.column };
}

/** Where to fetch the keys of an issuer, and how long to use them. */
export interface KeySetAddress {
  /** Default: found by discovery at the issuer. */
  readonly url?: string;
  /** PEM file of the authorities that may issue the server's certificate. */
  readonly caFile?: string;
  /** File with a bearer token to send to the server. */
  readonly tokenFile?: string;
  /** How long the last good keys stay in use after their lifetime while fetches fail, in milliseconds. */
  readonly staleFor?: number;
  /** File that keeps a copy for the next start. */
  readonly cacheFile?: string;
}

/** Another issuer whose tokens are accepted. */
export interface TrustedIssuer {
  /** Compared with `iss` byte by byte. */
  readonly issuer: string;
  /** One audience, or a list of which the token must have one. */
  readonly audience: string | readonly string[];
  /** Where its public keys are: an address to fetch them from, or a file to watch. */
  readonly jwks: KeySetAddress | { readonly file: string };
  readonly algorithms: readonly AsymmetricAlgorithm[];
  readonly clockSkewMs: number;
  /** The longest time from `iat` to `exp`, in milliseconds. */
  readonly maxLifetimeMs?: number | undefined;
  /** Accepted values of `typ`; by default those of access tokens. */
  readonly types?: readonly string[] | undefined;
  /** The claims that hold subject and groups. */
  readonly claims?: ClaimMapping | undefined;
}

/** What a source of trusted keys needs. */
export interface TrustedKeysContext {
  readonly clock: Clock;
  readonly log: Log;
  /** Called when the keys have changed. */
  readonly changed: () => void;
  readonly reloaded?: Reloaded | undefined;
  /** Whether copies of fetched keys are written; they are read in any case. Default: no. */
  readonly keepsCopies?: boolean | undefined;
}
