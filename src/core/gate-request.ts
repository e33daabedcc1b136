/** What `intake` read from one raw request, after everything ambiguous was refused. */
export interface GateRequestParts {
  /** Identifies the response: a safe integer, unique in the pod. Also in the log line. */
  readonly id: number;
  /** The client's `X-Request-Id` when it is well formed, else one made here. */
  readonly requestId: string;
  readonly method: string;
  /** Canonical path: what is authorised, and byte for byte what is forwarded (before a rewrite). */
  readonly path: string;
  /** The path with every percent-encoding of an allowed character decoded: what routes are matched on. */
  readonly matchPath: string;
  /** The query as the client sent it, with its `?`; empty when there was none. */
  readonly query: string;
  /** The `Host` header as sent: host and optional port. */
  readonly authority: string;
  /** The host alone, in lower case, without port. */
  readonly host: string;
  /** The first `Authorization` header, or undefined. */
  readonly authorization: string | undefined;
  /** How many `Authorization` headers there were: with two, nobody can say which one counts. */
  readonly authorizations: number;
  /** Name and value alternating, as they arrived. */
  readonly rawHeaders: readonly string[];
  /** `content-length` in bytes; -1 when the body is chunked; 0 when there is none. */
  readonly bodyLength: number;
  /** Stands for the connection: the same object for all of its requests, to remember things by. */
  readonly connection: object;
  /** Address of the TCP peer. */
  readonly peer: string;
  /** Whether the peer is a trusted proxy, whose forwarded headers are believed. */
  readonly peerTrusted: boolean;
  /** Address of the client: the peer, or what a trusted proxy says. */
  readonly client: string;
  /** What the client is counted by in limits: its IPv4 address, or its /64 of IPv6. */
  readonly network: string;
  readonly secure: boolean;
  /** Subject of the client's certificate (RFC 4514); undefined when it has shown none. */
  readonly clientSubject: string | undefined;
  /** Whether the client waits for 100 before it sends the body (RFC 9110 §10.1.1). */
  readonly expectsContinue: boolean;
}

let mint: (parts: GateRequestParts) => GateRequest;

/** A request that is unambiguous. Only `mintGateRequest` makes one, and only `server/intake` may import that (a lint rule). */
export class GateRequest implements GateRequestParts {
  readonly #unambiguous = true;
  readonly id: number;
  readonly requestId: string;
  readonly method: string;
  readonly path: string;
  readonly matchPath: string;
  readonly query: string;
  readonly authority: string;
  readonly host: string;
  readonly authorization: string | undefined;
  readonly authorizations: number;
  readonly rawHeaders: readonly string[];
  readonly bodyLength: number;
  readonly connection: object;
  readonly peer: string;
  readonly peerTrusted: boolean;
  readonly client: string;
  readonly network: string;
  readonly secure: boolean;
  readonly clientSubject: string | undefined;
  readonly expectsContinue: boolean;
  static {
    mint = (parts) => new GateRequest(parts);
  }

  private constructor(parts: GateRequestParts) {
    this.id = parts.id;
    this.requestId = parts.requestId;
    this.method = parts.method;
    this.path = parts.path;
    this.matchPath = parts.matchPath;
    this.query = parts.query;
    this.authority = parts.authority;
    this.host = parts.host;
    this.authorization = parts.authorization;
    this.authorizations = parts.authorizations;
    this.rawHeaders = parts.rawHeaders;
    this.bodyLength = parts.bodyLength;
    this.connection = parts.connection;
    this.peer = parts.peer;
    this.peerTrusted = parts.peerTrusted;
    this.client = parts.client;
    this.network = parts.network;
    this.secure = parts.secure;
    this.clientSubject = parts.clientSubject;
    this.expectsContinue = parts.expectsContinue;
  }

  /** Whether a value came through `intake`. */
  static is(value: unknown): value is GateRequest {
    return typeof value === "object" && value !== null && #unambiguous in value;
  }
}

/** Makes a request from parts that `intake` has checked. */
export function mintGateRequest(parts: GateRequestParts): GateRequest {
  return mint(parts);
}
