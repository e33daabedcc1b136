import type { Child } from "../machine/children.ts";
import { startHolding } from "./held.ts";

/** Requests by HTTP/2 over TLS whose answers have begun and do not end. */
export interface HeldStreams {
  readonly port: number;
  readonly ca: string;
  readonly token: string;
  readonly connections: number;
  /** On each connection. */
  readonly streams: number;
  /** Calls of gRPC whose client goes on; GETs otherwise. */
  readonly grpc: boolean;
}

const CLIENT = `${import.meta.dirname}/../clients/held-streams.ts`;

/** Opens them from a program of its own; resolves when all are open. Ending the child closes them. */
export async function holdStreams(options: HeldStreams): Promise<Child> {
  return startHolding(CLIENT, options);
}
