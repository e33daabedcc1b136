import type { GateRequest } from "../../core/request/gate-request.ts";
import type { Identity } from "../../core/request/identity.ts";

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
