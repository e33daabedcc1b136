import { Socket } from "node:net";

/** Returns the TCP connection below a TLS socket, which Node keeps under this name; undefined if there is none. */
export function transportOf(secured: Socket): Socket | undefined {
  const below: unknown = "_parent" in secured ? secured._parent : undefined;
  return below instanceof Socket ? below : undefined;
}
