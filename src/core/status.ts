import type { Explanation } from "./explanation.ts";
import type { ConfigProblem } from "./config-problem.ts";
import type { Outcome } from "./request/outcome.ts";

/**
 * Everything that the status page and `sallyport top` show. Times are in milliseconds since the epoch. Contains no
 * secrets.
 */
export interface Status {
  readonly version: string;
  readonly node: string;
  readonly host: string;
  readonly pid: number;
  readonly now: number;
  readonly startedAt: number;
  readonly state: "serving" | "draining" | "drained";
  readonly ready: boolean;
  readonly checks: readonly { name: string; passed: boolean; state: string }[];
  /** The number of threads that serve clients: configured, alive, and those that answered for this report. */
  readonly workers: { readonly count: number; readonly alive: number; readonly answered: number };
  readonly memory: { readonly residentBytes: number; readonly bufferedBytes: number };
  readonly traffic: StatusTraffic;
  readonly routes: readonly StatusRoute[];
  readonly upstreams: readonly StatusUpstream[];
  /** Undefined without TLS. */
  readonly certificate: StatusCertificate | undefined;
  readonly keys: readonly StatusKey[];
  readonly dependencies: readonly Dependency[];
  /** The last reload; undefined if there was none. */
  readonly reload: StatusReload | undefined;
  readonly configuration: StatusConfiguration;
  readonly minutes: readonly RecentMinute[];
  readonly refusals: readonly StatusRefusal[];
}

/** `requests` counts since the start; the others are current. */
interface StatusTraffic {
  readonly requests: number;
  readonly inFlight: number;
  readonly webSockets: number;
  readonly verifiedTokens: number;
}

/** A target whose oldest request has waited this long for its answer is shown as silent, in milliseconds. */
export const SILENT_MS = 5_000;
/** An end within this time, in milliseconds, is a warning. */
export const SOON_MS = 14 * 86_400_000;

/** One route; routes are listed in matching order. */
export interface StatusRoute {
  readonly name: string;
  readonly hosts: readonly string[] | undefined;
  /** A prefix, `=` and an exact path, or `~` and a regular expression. */
  readonly path: string;
  readonly methods: readonly string[] | undefined;
  /** Who may pass, in words. */
  readonly access: string;
  readonly upstream: string;
  /** Requests since the start, and how many of them ended with 4xx and 5xx. */
  readonly requests: number;
  readonly clientErrors: number;
  readonly serverErrors: number;
  /** How long requests took lately; WebSockets are left out. */
  readonly latency: StatusLatency;
}

/** Milliseconds that half of the requests of the last minutes did not exceed, and 99 %; undefined if there were none. */
interface StatusLatency {
  readonly p50: number | undefined;
  readonly p99: number | undefined;
}

interface StatusUpstream {
  readonly name: string;
  readonly inFlight: number;
  readonly waiting: number;
  readonly targets: readonly {
    readonly address: string;
    /**
     * Whether it accepts a connection now. `state` is `ok`, or why it accepts none, or why Sallyport does not use it.
     */
    readonly reachable: boolean;
    readonly state: string;
    /** How long the oldest request at it has waited for the head of its answer, in milliseconds; 0 if none waits. */
    readonly oldestMs: number;
    /** How long it took lately until the head of its answer. */
    readonly latency: StatusLatency;
  }[];
}

interface StatusCertificate {
  readonly subject: string;
  readonly issuer: string;
  readonly names: string;
  readonly notAfter: number;
}

interface StatusKey {
  /** What it signs. */
  readonly signs: "tokens" | "assertions";
  readonly kid: string;
  readonly algorithm: string;
  readonly state: "published" | "signing" | "verifying" | "expired";
  /** Undefined for a key that was generated at the start. */
  readonly file: string | undefined;
  readonly madeAt: number;
  /** Undefined if it does not expire. */
  readonly verifiesUntil: number | undefined;
}

/** Something that Sallyport depends on, and how it is. */
export interface Dependency {
  readonly kind:
    | "user store"
    | "state server"
    | "key set"
    | "remote check"
    | "sign-in provider"
    | "API keys"
    | "files"
    | "log"
    | "certificate"
    | "signing key";
  readonly name: string;
  readonly state: "good" | "warn" | "bad";
  /** `answers`, `2 keys`, `ends in 12d`. */
  readonly words: string;
  /** Since when it is not good, in milliseconds since the epoch; undefined if it is, or if that is unknown. */
  readonly since: number | undefined;
}

/** A store of API keys. */
export interface StatusKeyStore {
  readonly name: string;
  /** The number of keys in force; undefined if the store was never read. */
  readonly keys: number | undefined;
  /** When the next of its keys expires, in milliseconds since the epoch; Infinity if none will. */
  readonly nextExpiry: number;
  /** Since when it cannot be read or used, and the earlier keys stay; undefined if it can. */
  readonly failingSince: number | undefined;
}

export interface StatusReload {
  readonly at: number;
  readonly successful: boolean;
  readonly changes: readonly { key: string; before: unknown; after: unknown }[];
  readonly files: readonly string[];
  readonly problems: readonly string[];
}

export interface StatusConfiguration {
  readonly hash: string;
  /** Changed keys that take effect only after a restart. */
  readonly needRestart: readonly string[];
  readonly values: readonly { key: string; value: unknown; origin: string }[];
}

export type StatusRefusal = RecentRefusal & {
  /**
   * The result of a dry run of the same request now, without the token and the header fields, which are not kept;
   * undefined if the request could not be read.
   */
  readonly explanation: RefusalExplanation | undefined;
};

export interface RefusalExplanation extends Pick<Explanation, "verdict" | "routes" | "notes"> {
  /** The requirements of the matching route, in words. */
  readonly access: string | undefined;
  /** The command that explains it further, with a token. */
  readonly command: string;
}

type Shown = "id" | "requestId" | "client" | "method" | "host" | "path" | "route";

/**
 * A request that Sallyport itself answered with an error. Texts from the client are truncated to a few hundred
 * characters, and tokens in the path are masked. `method`, `host` and `path` are empty if the request could not be read.
 */
export interface RecentRefusal extends Pick<Outcome, Shown | "status" | "subject" | "protocol"> {
  /** Wall clock, in milliseconds since the epoch. */
  readonly at: number;
  /** The `reason` in the access log. */
  readonly reason: string;
}

/** The events of one minute, counted by result or reason. Events that did not occur are left out. */
export interface RecentMinute {
  /** The start of the minute, in milliseconds since the epoch. */
  readonly at: number;
  readonly logins: Readonly<Record<string, number>>;
  readonly refusals: Readonly<Record<string, number>>;
}

/** The events of the last minutes. */
export interface RecentEvents {
  /** The last minutes, without gaps, the current one last. */
  readonly minutes: readonly RecentMinute[];
  /** The last refusals, the newest first. */
  readonly refusals: readonly RecentRefusal[];
  /**
   * How long finished requests of a route took, and how long a target took until the head of its answer: counts of the last
   * minutes, which `quantileOf` reads.
   */
  readonly durations: {
    readonly routes: ReadonlyMap<string, readonly number[]>;
    /** By upstream and target, with a space between. */
    readonly targets: ReadonlyMap<string, readonly number[]>;
  };
}

/** Whether tokens of a trusted issuer can be verified now. */
export interface IssuerState {
  readonly issuer: string;
  /** Whether a usable key of the issuer is loaded. */
  readonly usable: boolean;
  /** The state of fetching its keys; undefined if they are read from a file. */
  readonly fetches?: {
    /** When its keys were last fetched, in milliseconds since the epoch; undefined if never. */
    readonly fetchedAt: number | undefined;
    /** Whether the keys are older than they should be, because fetches fail. */
    readonly stale: boolean;
    /** Since when fetches fail; undefined if the last one did not. */
    readonly failingSince: number | undefined;
    readonly succeeded: number;
    readonly failed: number;
  };
  /** The number of usable keys that are loaded. */
  readonly keys: number;
  /** When the keys were last read or fetched, in milliseconds since the epoch (wall clock); undefined if never. */
  readonly readAt: number | undefined;
}

/**
 * Called after each later reading of the configuration or of a file that is read separately from it, with the problems
 * that keep the new content out of force; none if it is in force.
 */
export type Reloaded = (problems: readonly string[]) => void;

/** The result of a reload. */
export type ReloadResult =
  | {
      readonly successful: true;
      /** The changed keys; no values, which may be secrets. */
      readonly changed: readonly string[];
      /** The changed files: a renewed certificate changes no key. */
      readonly files: readonly string[];
      /** The keys changed since the process started that take effect only after a restart. */
      readonly atRestart: readonly string[];
    }
  | { readonly successful: false; readonly problems: readonly ConfigProblem[] };
