import type { BufferedBytes } from "../../core/buffered-bytes.ts";
import type { ClientReading } from "../../core/request/client-reading.ts";
import type { Observer } from "../../core/observer.ts";
import type { UpgradeRequest } from "../../core/request/forwarder.ts";
import type { IncomingRequest, OutgoingResponse } from "../../core/request/http-message.ts";
import type { Permit } from "../../core/request/permit.ts";
import type { Transfer } from "../../core/request/transfer.ts";
import type { Clock } from "../../lib/clock.ts";
import type { OutgoingHeaders } from "../headers/outgoing-headers.ts";
import type { Upstream } from "../pool/upstreams.ts";
import type { BodyCopy } from "../mirror/body-copy.ts";

/** One request that may be forwarded. */
export interface PermittedRequest {
  readonly settings: ForwardingSettings;
  readonly permit: Permit;
  readonly upstream: Upstream;
  readonly request: IncomingRequest;
  readonly response: OutgoingResponse;
  readonly transfer: Transfer;
  /** Receives a copy of the body if the request is mirrored. */
  readonly copy: BodyCopy | undefined;
}

/** A permitted upgrade. Its response is used if the backend refuses. */
export type UpgradeContext = Omit<PermittedRequest, keyof UpgradeRequest | "copy"> & UpgradeRequest;

/** What all requests of a gate share. */
export interface ForwardingSettings {
  readonly outgoing: OutgoingHeaders;
  readonly buffered: BufferedBytes;
  readonly reading: ClientReading;
  readonly clock: Clock;
  readonly observer: Pick<Observer, "upstreamAnswered" | "upstreamFailed" | "upstreamRetried">;
}
