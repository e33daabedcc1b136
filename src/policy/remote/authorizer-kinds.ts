import type { RemoteCheckObserver, RemoteProbe } from "../../core/remote-check.ts";
import type { Clock } from "../../lib/clock.ts";
import { keysOf } from "../../lib/keys-of.ts";
import { RemoteAuthorizer } from "./remote-authorizer.ts";
import { subjectAccessReview } from "./subject-access-review.ts";
import type { GateRequest } from "../../core/request/gate-request.ts";
import type { Identity } from "../../core/request/identity.ts";
import { RereadFile } from "../../lib/files/watched-file.ts";
import { RemoteClient } from "../../lib/http/remote-client.ts";
import { RemoteError } from "../../lib/text/error-code.ts";

interface HttpCallSettings {
  readonly url: string;
  readonly caFile?: string;
  readonly tokenFile?: string;
}

const CONNECTIONS = 32;
/** The maximum size of a response body, in bytes. Only the status matters. */
const LARGEST_ANSWER = 65_536;

/** Any HTTP server, such as Open Policy Agent. */
const http: AuthorizerKind<HttpCallSettings> = {
  open: (settings) => new HttpCall(settings),
  probe({ url }, nobody) {
    const caller = { subject: nobody, groups: [], issuer: "", scopes: [], claims: {} };
    return {
      url,
      question: JSON.stringify({ method: "GET", path: "/", host: "", client: "", ...caller }),
      hint: "does the server accept POST at this URL, with the body that docs/reference/configuration.md describes?",
    };
  },
};

/** Asks any HTTP server. 2xx allows; 4xx denies, except 408 and 429; everything else counts as unavailable. */
class HttpCall implements AuthorizationClient {
  readonly connections = CONNECTIONS;
  readonly #url: string;
  readonly #client: RemoteClient;
  readonly #token: RereadFile | undefined;

  constructor({ url, caFile, tokenFile }: HttpCallSettings) {
    this.#url = url;
    this.#client = new RemoteClient({
      caFile,
      connections: this.connections,
      maxBytes: LARGEST_ANSWER,
    });
    this.#token = tokenFile === undefined ? undefined : new RereadFile(tokenFile);
  }

  /** The path is the one that routes are matched against. The query is not sent, since it may contain secrets. */
  questions({ method, matchPath: path, host, client }: GateRequest, identity: Identity): string[] {
    const { subject, groups, issuer, scopes, claims } = identity;
    const caller = { subject, groups, issuer, scopes, claims: Object.fromEntries(claims ?? []) };
    return [JSON.stringify({ method, path, host, client, ...caller })];
  }

  async ask(body: string, signal: AbortSignal): Promise<boolean> {
    const token = await this.#token?.text();
    const { status } = await this.#client.ask(
      {
        method: "POST",
        url: this.#url,
        headers: {
          accept: "application/json",
          "content-type": "application/json",
          ...(token === undefined ? {} : { authorization: `Bearer ${token.trim()}` }),
        },
        body,
      },
      signal,
    );
    if (status >= 200 && status < 300) return true;
    if (status >= 400 && status < 500 && status !== 408 && status !== 429) return false;
    throw new RemoteError(`status ${status}`);
  }

  close(): void {
    this.#client.close();
  }
}

/** The values of `kind` in an entry of `authorization`. The settings of each kind are in `config/sections/authorization-section.ts`. */
const KINDS = { subjectAccessReview, http } as const;

type Settings = {
  [Kind in keyof typeof KINDS]: (typeof KINDS)[Kind] extends AuthorizerKind<infer Own>
    ? Own
    : never;
};

export type AuthorizerKindName = keyof Settings;

export const AUTHORIZERS: readonly AuthorizerKindName[] = keysOf(KINDS);

interface Common {
  /** In milliseconds. */
  readonly timeout: number;
  /** How long a positive answer is cached, in milliseconds. */
  readonly cache: number;
  /** How long it counts after that while the server is away, in milliseconds. */
  readonly staleFor?: number;
  readonly onError: "unavailable" | "deny";
}

/** An entry of `authorization`. */
export type AuthorizationSettings<Kind extends AuthorizerKindName = AuthorizerKindName> = {
  [Each in Kind]: { readonly kind: Each } & Common & Settings[Each];
}[Kind];

const BY_NAME: { readonly [Kind in AuthorizerKindName]: AuthorizerKind<Settings[Kind]> } = KINDS;

/** Opens one entry of `authorization`. Close it after its last request. */
export function openAuthorizer<Kind extends AuthorizerKindName>(
  settings: AuthorizationSettings<Kind>,
  clock: Clock,
  observer: RemoteCheckObserver,
): RemoteAuthorizer {
  const { kind, timeout, cache, staleFor = 0, onError } = settings;
  const client = BY_NAME[kind].open(settings);
  return new RemoteAuthorizer({ client, timeout, cache, staleFor, onError, clock, observer });
}

/** Completes settings by what follows from the rest of the configuration: see `AuthorizerKind`. */
export function completeAuthorizer<Kind extends AuthorizerKindName>(
  settings: AuthorizationSettings<Kind>,
  clusterIssuers: readonly string[],
): AuthorizationSettings<Kind> {
  return { ...settings, ...BY_NAME[settings.kind].complete?.(settings, clusterIssuers) };
}

/** Returns a test question for `sallyport doctor`. @param nobody a caller to whom the server must say no. */
export function authorizerProbe<Kind extends AuthorizerKindName>(
  settings: AuthorizationSettings<Kind>,
  nobody: string,
): RemoteProbe {
  const kind = BY_NAME[settings.kind];
  const { url, question, hint } = kind.probe(settings, nobody);
  const ask = async (signal: AbortSignal): Promise<unknown> => {
    const client = kind.open(settings);
    try {
      return await client.ask(question, signal);
    } finally {
      client.close();
    }
  };
  return { url, hint, ask };
}

/** A kind of authorization server: the values of `kind` in an entry of `authorization`. */
export interface AuthorizerKind<Settings> {
  open(settings: Settings): AuthorizationClient;
  /**
   * Returns settings that follow from the rest of the configuration.
   *
   * @param clusterIssuers the issuers whose subjects are users of the Kubernetes cluster.
   */
  complete?(settings: Settings, clusterIssuers: readonly string[]): Partial<Settings>;
  /** Describes a test question for `sallyport doctor`. @param nobody a caller to whom the server must say no. */
  probe(settings: Settings, nobody: string): AuthorizationProbe;
}

interface AuthorizationProbe {
  /** The server's URL. */
  readonly url: string;
  /** The text to send: see `AuthorizationClient`. */
  readonly question: string;
  /** What to look at if the server does not answer it. */
  readonly hint: string;
}

/** Asks an authorization server. */
export interface AuthorizationClient {
  /** The maximum number of connections to the server. */
  readonly connections: number;
  /**
   * Returns the questions about a request, as the texts to send. The server must allow all of them. Returns undefined
   * if the caller is refused without a question.
   */
  questions(request: GateRequest, identity: Identity): readonly string[] | undefined;
  /** Sends one question. @throws RemoteError, or the system's error. */
  ask(question: string, signal: AbortSignal): Promise<boolean>;
  close(): void;
}
