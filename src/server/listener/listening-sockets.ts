import { once } from "node:events";
import { createServer, type ListenOptions, type Server } from "node:net";
import { Server as TlsServer } from "node:tls";

/**
 * libuv accepts one connection per listening socket and turn of the event loop, so several sockets that share the address
 * accept more. Accepted connections can be put in a fair order (`FairReading`), those in the backlog cannot. With four
 * threads on one core, 540 connections of a crowd made a newcomer wait 1.1 s with 4 sockets, and 0.3 s with 16.
 */
const SOCKETS = 16;
/** Whether the system distributes connections over all sockets of an address (SO_REUSEPORT). */
const REUSE_PORT = process.platform === "linux";

export interface Address {
  readonly host: string;
  /** 0 for a port chosen by the system. */
  readonly port: number;
}

export interface ListeningSockets extends Address {
  /** Stops accepting connections; resolves when the open ones have closed. */
  close(): Promise<void>;
}

/**
 * Makes a server listen. Rejects if it cannot bind the address.
 *
 * @param shared whether other threads listen on it, too; otherwise nothing else may.
 * @param accepted the socket options that the server was created with.
 * @param onError called if one of the sockets fails later.
 */
export async function listenOn(
  server: Server,
  address: Address & { readonly shared: boolean; readonly backlog: number },
  accepted: { readonly highWaterMark: number },
  onError: (error: Error) => void,
): Promise<ListeningSockets> {
  const { host, shared, backlog } = address;
  if (REUSE_PORT && !shared && address.port !== 0) await assertAddressFree(address);
  const bound = await listening(server, { ...address, reusePort: shared || REUSE_PORT });
  const others = Array.from({ length: REUSE_PORT ? SOCKETS - 1 : 0 }, () => {
    const allowHalfOpen = !(server instanceof TlsServer);
    return createServer({ ...accepted, allowHalfOpen, noDelay: true }, (socket) => {
      server.emit("connection", socket);
    });
  });
  const all = [server, ...others];
  const close = async (): Promise<void> => {
    await Promise.all(all.map((each) => new Promise((resolve) => void each.close(resolve))));
  };
  try {
    for (const other of others) {
      await listening(other, { host, port: bound.port, reusePort: true, backlog });
    }
  } catch (error) {
    await close();
    throw error;
  }
  for (const each of all) each.on("error", onError);
  return { ...bound, close };
}

/** A shared address could also be shared with other processes of the same user, so bind it exclusively first. */
async function assertAddressFree({ host, port }: Address): Promise<void> {
  await using alone = createServer();
  await listening(alone, { host, port });
}

/** Resolves with the address. Rejects if it is not available. */
export async function listening(server: Server, options: ListenOptions): Promise<Address> {
  server.listen(options);
  await once(server, "listening");
  const bound = server.address();
  if (typeof bound !== "object" || bound === null) throw new Error("not listening on a port");
  return { host: bound.address, port: bound.port };
}
