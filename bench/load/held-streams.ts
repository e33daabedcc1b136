import { type Child, startChild } from "../machine/children.ts";

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
  const child = startChild(process.execPath, [CLIENT, JSON.stringify(options)]);
  try {
    await child.read((output) => (output.includes("holding ") ? true : undefined), 60_000);
    return child;
  } catch (error) {
    await child.stop();
    throw error;
  }
}
