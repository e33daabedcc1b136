import type { Challenges } from "../request/gate.ts";
import type { BufferedBytes, ConnectionLedger } from "./connection-ledger.ts";
import type { Log } from "../../core/log.ts";
import type { Observer } from "../../core/observer.ts";
import type { ThreadCounts } from "../../lib/async/shared-counts.ts";
import type { Networks } from "../../lib/http/networks.ts";
import type { Pipeline } from "../request/pipeline.ts";
import type { ServerTls } from "../tls/tls-listener.ts";
import type { ClientTimeouts } from "./client-timeouts.ts";
import type { FairReading } from "./reading/fair-reading.ts";

export interface ListenOptions {
  readonly host: string;
  readonly port: number;
  /** Whether several threads accept on the port. */
  readonly shared: boolean;
  /** Counts the open connections of all threads; undefined if only this one accepts them. */
  readonly counts: ThreadCounts | undefined;
  /** Undefined for plain HTTP. */
  readonly tls: ServerTls | undefined;
  /** Whether clients may speak HTTP/2. */
  readonly http2: boolean;
  readonly limits: {
    readonly headerBytes: number;
    /** Concurrent streams of an HTTP/2 connection. */
    readonly streams: number;
    readonly connections: number;
    readonly connectionsPerAddress: number;
  };
  /** Whether trusted proxies name the client with the PROXY protocol. */
  readonly proxyProtocol: boolean;
  /** Exempt from the limit per address, since many clients are behind them. */
  readonly trustedProxies: Networks;
  readonly timeouts: ClientTimeouts & {
    /** Milliseconds without a byte in either direction during a request (a client that never reads). */
    readonly stall: number;
  };
  readonly pipeline: Pipeline;
  /** Counts the bytes buffered for connections. */
  readonly buffered: BufferedBytes & Pick<ConnectionLedger, "open">;
  /** Shares the time for reading from clients. */
  readonly reading: FairReading;
  readonly nextId: () => number;
  readonly rules: Challenges;
  readonly observer: Pick<Observer, "requestRefused" | "requestStarted" | "requestFinished">;
  readonly log: Log;
}

/** The options that may change while it listens. An open connection keeps its certificate. */
export type ListenChanges = Pick<ListenOptions, "tls" | "http2" | "limits" | "timeouts">;
