import type { RemoteAnswer, RemoteQuestion } from "../../lib/http/remote-request.ts";

/** A kind of server that verifies tokens: one of the keys of an issuer in `tokens.trusted`. */
export interface TokenCheckKind<Settings> {
  /** What `explain` calls it. */
  readonly label: string;
  /** Whether the server is asked only about tokens that are not JWTs. */
  readonly opaqueOnly: boolean;
  /** Whether its callers are the users of the Kubernetes cluster, whom a SubjectAccessReview can be about. */
  readonly ofCluster: boolean;
  /** What to look at if the server does not answer, for `sallyport doctor`. */
  readonly hint: string;
  /** Returns the server's URL. */
  url(settings: Settings): string;
  open(settings: Settings): TokenCheckProtocol;
}

/** How a server is asked about a token. */
interface TokenCheckProtocol {
  question(token: string): Promise<RemoteQuestion>;
  /** @returns undefined for a token that is not active. @throws RemoteError */
  claimsIn(answer: RemoteAnswer, token: string): RemoteClaims | undefined;
}

/** The claims of a token as the remote server reports them. */
export type RemoteClaims = Readonly<Record<string, unknown>>;
