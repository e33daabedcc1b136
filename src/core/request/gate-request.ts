import type { ClientCertificate } from "../../server/tls/client-certificate.ts";
import type { PathSpelling } from "../../lib/http/path/canonical-path.ts";

/** What all requests of one connection have in common. They share the object, so it can be a key. */
export interface ClientConnection {
  /** Address of the TCP peer. */
  readonly peer: string;
  /** Whether the peer is a trusted proxy, whose forwarded headers are used. */
  readonly peerTrusted: boolean;
  readonly secure: boolean;
  /** The client's verified certificate; undefined without one, and in what another proxy asks about its own client. */
  readonly clientCertificate: ClientCertificate | undefined;
}

/** The parts of a request that `intake` has found unambiguous. */
export type GateRequestParts = Pick<GateRequest, keyof GateRequest>;

/** Creates a request from parts. Only `server/request/intake.ts`, which has checked them, may import it (a lint rule). */
export let mintGateRequest: (parts: GateRequestParts) => GateRequest;

/** An unambiguous request. Only `mintGateRequest` creates one. */
export class GateRequest {
  readonly #unambiguous = true;
  /** Identifies the response, and its line in the access log: a safe integer, unique in the pod. */
  readonly id: number;
  /** The client's `X-Request-Id` if it is well-formed, else a generated one. */
  readonly requestId: string;
  readonly method: string;
  /** The canonical path: authorized, and forwarded byte for byte unless rewritten. */
  readonly path: string;
  /** The canonical path with all encodings of allowed characters decoded: routes are matched against it. */
  readonly matchPath: string;
  /** The spelling of the path. A route accepts the path if its `paths` allows this spelling. */
  readonly spelling: PathSpelling;
  /** The query as sent, including its `?`; empty if there is none. */
  readonly query: string;
  /** The `Host` header as sent: host and optional port. */
  readonly authority: string;
  /** The host in lower case, without port. */
  readonly host: string;
  /** The first `Authorization` header, or undefined. */
  readonly authorization: string | undefined;
  /** The number of `Authorization` headers: with two, it is unclear which one counts. */
  readonly authorizations: number;
  /** Names and values as received, alternating, without those that `server.underscoreHeaders` drops. */
  readonly rawHeaders: readonly string[];
  /** `Content-Length` in bytes; -1 for a body of unknown length; 0 for none. */
  readonly bodyLength: number;
  readonly connection: ClientConnection;
  /** Address of the client: the peer, or what a trusted proxy reports. */
  readonly client: string;
  /** The key of the client in limits: its IPv4 address or its IPv6 /64. */
  readonly network: string;
  /** Whether the client waits for 100 Continue before it sends the body (RFC 9110 §10.1.1). */
  readonly expectsContinue: boolean;
  static {
    mintGateRequest = (parts) => new GateRequest(parts);
  }

  private constructor(parts: GateRequestParts) {
    this.id = parts.id;
    this.requestId = parts.requestId;
    this.method = parts.method;
    this.path = parts.path;
    this.matchPath = parts.matchPath;
    this.spelling = parts.spelling;
    this.query = parts.query;
    this.authority = parts.authority;
    this.host = parts.host;
    this.authorization = parts.authorization;
    this.authorizations = parts.authorizations;
    this.rawHeaders = parts.rawHeaders;
    this.bodyLength = parts.bodyLength;
    this.connection = parts.connection;
    this.client = parts.client;
    this.network = parts.network;
    this.expectsContinue = parts.expectsContinue;
  }

  /** Whether a value is a genuine `GateRequest`. */
  static is(value: unknown): value is GateRequest {
    return typeof value === "object" && value !== null && #unambiguous in value;
  }
}
