import { isDeepStrictEqual } from "node:util";
import type { Configuration } from "../../config/configuration.ts";
import type { IssuerState, Reloaded } from "../../core/status.ts";
import type { Log } from "../../core/log.ts";
import type { Clock } from "../../lib/clock.ts";
import { Leased } from "../../lib/async/leased.ts";
import { type JwkSet, type KeySource, readJwkSet } from "../keys/key-set.ts";
import { logLoaded, TrustedKeyAddress } from "./trusted-key-address.ts";
import { callEach } from "../../lib/async/isolation.ts";
import type { Expectations, ProofRule } from "../../core/request/token-verifier.ts";
import type { SigningKeys } from "../keys/key-ring.ts";
import type { OwnKeys } from "../keys/own-keys.ts";
import { typeName } from "../verify/token-text.ts";
import { ConfigError } from "../../core/config-problem.ts";
import { codeOrMessage } from "../../lib/text/error-code.ts";
import {
  type FileContent,
  readFailure,
  readRegularFileSync,
} from "../../lib/files/regular-file.ts";
import { parsePositionedYaml } from "../../lib/files/positioned-yaml.ts";
import { followFile } from "../../lib/files/watched-file.ts";

/** The content of a JWK Set file as plain data for other threads. */
type TrustedKeyContent = Pick<FileContent, "path" | "text" | "fingerprint">;

/** Says that a JWK Set file cannot be read. */
export function unreadable(why: string): string {
  return `the file cannot be read: ${why}`;
}

/**
 * The keys of a JWK Set file, which is read again when it changes. A broken file keeps the old keys and logs the error.
 *
 * @throws ConfigError if the content is invalid.
 */
function openTrustedKeyFile(
  content: TrustedKeyContent,
  { issuer, algorithms }: TrustedIssuer,
  { clock, log, changed }: TrustedKeysContext,
  state: KeyFileState | undefined,
): KeySource {
  const { path: file } = content;
  const broken = (error: unknown, place: ReturnType<typeof placeOfFault>): void => {
    const reason = codeOrMessage(error);
    const fields = { issuer, file, ...place, reason };
    log.error("the keys of a trusted issuer cannot be reloaded: the old keys stay in use", fields);
    state?.reloaded([`${file}: the keys cannot be used: ${reason}`]);
  };
  let known = readTrustedKeys(content, algorithms);
  let readAt = clock.now();
  logLoaded(issuer, known, log);
  const followed = followFile(file, content.fingerprint, {
    onChange(content) {
      const before = known;
      try {
        known = readJwkSet(content.text, algorithms);
      } catch (error) {
        broken(error, placeOfFault(content));
        return;
      }
      readAt = clock.now();
      logLoaded(issuer, known, log);
      state?.reloaded([]);
      if (known.fingerprint !== before.fingerprint) changed();
    },
    onUnreadable: (error) => broken(error, undefined),
  });

  return {
    current: () => known.keys,
    readAt: () => readAt,
    refresh: () => Promise.resolve(),
    close() {
      followed.close();
      state?.removed();
    },
  };
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

/** Returns where the YAML parser finds a syntax error: JSON is YAML, unless it is nested too deeply. */
function placeOfFault({ path, text }: Pick<FileContent, "path" | "text">) {
  const [problem] = parsePositionedYaml(text, path).problems;
  return problem && { line: problem.line, column: problem.column };
}

/** Another issuer whose tokens are accepted, as its keys verify them. */
export type TrustedIssuer = Extract<
  Configuration["tokens"]["trusted"][number],
  { readonly jwks: unknown }
>;

/** Where to fetch the keys of an issuer, and how long to use them. */
export type KeySetAddress = Exclude<TrustedIssuer["jwks"], { readonly file: string }>;

/** What a source of trusted keys needs. */
export interface TrustedKeysContext {
  readonly clock: Clock;
  readonly log: Log;
  /** Called when the keys have changed. */
  readonly changed: () => void;
  /** Whether copies of fetched keys are written; they are read in any case. Default: no. */
  readonly keepsCopies?: boolean | undefined;
}

/** The accepted issuers: our own and the trusted ones. */
export interface IssuerOptions {
  readonly issuer: string;
  readonly audience: string;
  readonly keys: SigningKeys | OwnKeys;
  readonly trusted?: readonly TrustedIssuer[];
  /** What happens to bound tokens; the rule of a trusted issuer that has none of its own. Default: `refuse`. */
  readonly proof?: ProofRule | undefined;
  /** The sources of the keys of trusted issuers, if they are shared. */
  readonly trustedKeys?: Pick<TrustedKeys, "open"> | undefined;
}

export interface KnownIssuer extends Expectations {
  readonly name: string;
  readonly keys: KeySource;
}

const OWN_CLOCK_SKEW_MS = 60_000; // between the clocks of replicas, for `iat` only

/**
 * Our own keys verify tokens of our own issuer only, and the keys of a trusted issuer only tokens with exactly its
 * name. Throws if two issuers have the same name.
 */
export function knownIssuers(
  { issuer, audience, keys, trusted = [], trustedKeys, proof }: IssuerOptions,
  context: TrustedKeysContext,
): ReadonlyMap<string, KnownIssuer> {
  const sources = trustedKeys ?? new TrustedKeys(context);
  const own: KeySource = {
    current: () => keys.verification,
    refresh: () => Promise.resolve(),
    close: "onChange" in keys ? keys.onChange(context.changed) : () => undefined,
  };
  const issuers = new Map<string, KnownIssuer>();
  issuers.set(issuer, {
    name: issuer,
    audiences: [audience],
    skewMs: 0,
    issuedAheadMs: OWN_CLOCK_SKEW_MS,
    proof,
    keys: own,
  });
  try {
    for (const each of trusted) {
      if (issuers.has(each.issuer)) throw new Error(`The issuer ${each.issuer} is named twice`);
      issuers.set(each.issuer, {
        name: each.issuer,
        audiences: [each.audience].flat(),
        skewMs: each.clockSkew,
        issuedAheadMs: each.clockSkew,
        maxLifetimeMs: each.maxLifetime,
        types: each.types?.map(typeName),
        mapping: each.claims,
        proof: each.proof ?? proof,
        keys: sources.open(each, context.changed),
      });
    }
  } catch (error) {
    for (const { keys: opened } of issuers.values()) opened.close();
    throw error;
  }
  return issuers;
}

/** Observes one key file. */
interface KeyFileState {
  readonly reloaded: Reloaded;
  /** Called when the file is no longer read. */
  removed(): void;
}

interface TrustedKeysOptions extends Pick<TrustedKeysContext, "clock" | "log" | "keepsCopies"> {
  /** Creates the observer of another file. */
  readonly stateOf?: () => KeyFileState;
  /** Called with the states of all issuers when their keys or the issuers themselves have changed. */
  readonly issuersChanged?: ((states: readonly IssuerState[]) => void) | undefined;
}

/** The contents of JWK Set files, by path, as plain data for other threads. */
export type TrustedKeyFiles = ReadonlyMap<string, TrustedKeyContent>;

/** What determines the keys of an issuer. */
type KeySettings = Pick<TrustedIssuer, "issuer" | "jwks" | "algorithms">;

/** A source, and the callbacks of its users for changed keys. */
interface SharedSource {
  readonly settings: KeySettings;
  /** Leased by each user. */
  readonly source: Leased<KeySource>;
  readonly users: Set<() => void>;
}

/**
 * The sources of the keys of trusted issuers. Users of the same keys share one source, so that a new configuration
 * keeps keys whose server is down at the time.
 */
export class TrustedKeys {
  readonly #options: TrustedKeysOptions;
  readonly #shared = new Set<SharedSource>();

  constructor(options: TrustedKeysOptions) {
    this.#options = options;
  }

  /**
   * Opens the keys of an issuer until they are closed.
   *
   * @param changed called when the keys have changed.
   * @param files the contents of key files that were already read; a file that is not among them is read now.
   * @throws ConfigError if the content of a file is invalid, or if it has to be read and cannot be.
   */
  open(trusted: TrustedIssuer, changed: () => void, files?: TrustedKeyFiles): KeySource {
    const { issuer, jwks, algorithms } = trusted;
    const settings = { issuer, jwks, algorithms };
    const before = Array.from(this.#shared).find((each) =>
      isDeepStrictEqual(each.settings, settings),
    );
    before?.source.acquire();
    const { source, users } = before ?? this.#begin(settings, trusted, files);
    users.add(changed);
    return {
      current: () => source.value.current(),
      refresh: (kid) => source.value.refresh(kid),
      close: () => {
        if (users.delete(changed)) source.release();
      },
    };
  }

  /** Fetches the keys of all addresses again, except those that a token or a reload fetched within the last 5 seconds. */
  refresh(): void {
    const tooMany = (): void => undefined; // the others wait for the same response
    for (const { source } of this.#shared) void source.value.refresh().catch(tooMany);
  }

  /** Returns the states of all currently trusted issuers. */
  states(): IssuerState[] {
    return Array.from(this.#shared, ({ settings, source: { value: source } }) => {
      const keys = source.current()?.length ?? 0;
      return {
        issuer: settings.issuer,
        usable: keys > 0,
        keys,
        readAt: source.readAt?.(),
        ...(source instanceof TrustedKeyAddress ? { fetches: source.fetches } : {}),
      };
    });
  }

  #notify(): void {
    this.#options.issuersChanged?.(this.states());
  }

  #begin(
    settings: KeySettings,
    trusted: TrustedIssuer,
    files: TrustedKeyFiles | undefined,
  ): SharedSource {
    const users = new Set<() => void>();
    const changed = (): void => {
      callEach(users, (notify) => notify());
      this.#notify();
    };
    const source = new Leased(this.#sourceOf(trusted, changed, files), (done) => {
      done.close();
      this.#shared.delete(shared);
      this.#notify();
    });
    const shared: SharedSource = { settings, source, users };
    this.#shared.add(shared);
    this.#notify();
    return shared;
  }

  #sourceOf(
    trusted: TrustedIssuer,
    changed: () => void,
    files: TrustedKeyFiles | undefined,
  ): KeySource {
    const { clock, log, stateOf, keepsCopies } = this.#options;
    const { jwks } = trusted;
    if (!("file" in jwks)) {
      return new TrustedKeyAddress(jwks, trusted, { clock, log, changed, keepsCopies });
    }
    let content = files?.get(jwks.file);
    try {
      content ??= readRegularFileSync(jwks.file);
    } catch (error) {
      throw new ConfigError([{ file: jwks.file, message: unreadable(readFailure(error)) }]);
    }
    return openTrustedKeyFile(content, trusted, { clock, log, changed }, stateOf?.());
  }
}
