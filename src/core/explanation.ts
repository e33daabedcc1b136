/** A request that is not sent, only explained. */
export interface AskedRequest {
  /** The head as it would arrive, a character for each byte: request line, header fields, empty line. */
  readonly head: string;
  /** Whether it would come over TLS. */
  readonly secure: boolean;
  /** Address of the TCP peer. */
  readonly peer: string;
}

/** What would become of a request, and how that was found. Holds no token, signature, cookie or query. */
export interface Explanation {
  readonly verdict: ExplainedVerdict;
  /** Undefined when the request can be read in more than one way. */
  readonly request: ExplainedRequest | undefined;
  /** In the order in which they are tried. */
  readonly routes: readonly ExplainedRoute[];
  /** Undefined when no token was looked at. */
  readonly token: ExplainedToken | undefined;
  /** Undefined when the route asks for none. */
  readonly groups: ExplainedGroups | undefined;
  /** Undefined when nothing is forwarded. */
  readonly backend: ExplainedBackend | undefined;
  /** What the explanation could not take into account. */
  readonly notes: readonly string[];
}

export interface ExplainedVerdict {
  readonly outcome: "forwarded" | "answered" | "refused";
  /** Status of the refusal. */
  readonly status: number | undefined;
  /** Of a refusal, the word that the log line has under `reason`. */
  readonly reason: string | undefined;
  /** What was wrong, in words, where the reason does not tell it. */
  readonly detail: string | undefined;
  /** Why it would be refused if its route were not only watched. */
  readonly wouldDeny: string | undefined;
  /** Name of the route, `authenticate` or `version` for our own endpoints, `none`. */
  readonly route: string;
}

interface ExplainedRequest {
  readonly method: string;
  readonly host: string;
  /** Canonical: what is forwarded. */
  readonly path: string;
  /** What routes are matched on. */
  readonly matchPath: string;
  readonly client: string;
  readonly peer: string;
  readonly peerTrusted: boolean;
  readonly secure: boolean;
  readonly protocol: "http" | "websocket";
}

export interface ExplainedRoute {
  readonly name: string;
  readonly hosts: readonly string[] | undefined;
  /** A prefix, or one path behind `=`. */
  readonly path: string;
  readonly methods: readonly string[] | undefined;
  /** What became of it: the first that fits is taken, what comes behind that is not tried. */
  readonly result: "taken" | "not tried" | "does not fit";
  /** The parts of the request that do not fit. */
  readonly misfits: readonly ("host" | "path" | "method")[];
}

export interface ExplainedToken {
  readonly accepted: boolean;
  /** Why not. */
  readonly reason: string | undefined;
  readonly steps: readonly ExplainedStep[];
  readonly subject: string | undefined;
  readonly groups: readonly string[];
  readonly issuer: string | undefined;
  /** Milliseconds until it ends. */
  readonly timeLeftMs: number | undefined;
}

export interface ExplainedStep {
  readonly step: "bearer" | "size" | "form" | "issuer" | "claims" | "key" | "signature";
  readonly result: "ok" | "failed" | "not reached";
  readonly detail: string;
}

export interface ExplainedGroups {
  readonly any: readonly string[] | undefined;
  readonly all: readonly string[] | undefined;
  readonly held: readonly string[];
}

/** Times in milliseconds, sizes in bytes. */
export interface ExplainedBackend {
  readonly upstream: string;
  readonly targets: readonly string[];
  /** After a rewrite, without the query. */
  readonly path: string;
  readonly queryBytes: number;
  readonly headers: {
    readonly added: readonly (readonly [name: string, value: string])[];
    /** Names alone: what a client sends may be secret. */
    readonly removed: readonly string[];
    readonly kept: readonly string[];
  };
  readonly timeouts: {
    readonly connect: number;
    readonly response: number;
    readonly idle: number;
    readonly queue: number;
  };
  readonly limits: {
    /** Undefined for none. */
    readonly bodyBytes: number | undefined;
    readonly connections: number;
    readonly queue: number;
    readonly rate:
      | {
          readonly by: "subject" | "address";
          readonly requests: number;
          readonly withinMs: number;
          readonly burst: number;
        }
      | undefined;
  };
}
