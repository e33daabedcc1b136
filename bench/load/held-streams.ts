import type { Child } from "../machine/children.ts";
import { startHolding } from "./held.ts";

/** Requests over HTTP/2 and TLS whose answers have begun and do not end. */
export interface HeldStreams {
  readonly port: number;
  readonly ca: string;
  readonly token: string;
  readonly connections: number;
  /** The number of streams per connection. */
  readonly streams: number;
  /** Whether they are gRPC calls with an open request; GETs otherwise. */
  readonly grpc: boolean;
}

const CLIENT = `${import.meta.dirname}/../clients/held-streams.ts`;

/** Opens them from a separate program; resolves when all are open. Ending the child closes them. */
export async function holdStreams(options: HeldStreams): Promise<Child> {
  return startHolding(CLIENT, options);
}
