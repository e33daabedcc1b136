import type { Socket } from "node:net";
import type { buildConnector, Dispatcher } from "undici";
import { Relay } from "./relay.ts";
import { Client } from "./undici-parts.ts";

/** The connection that a request goes out on, as far as anybody outside undici can know it. */
export interface ConnectionUse {
  socket: Socket | undefined;
  /** Whether a request has gone out on this socket before. */
  used: boolean;
}

/** One kept-alive connection to a backend, made anew when it was lost. It tells every relay that it is what it goes out on. */
export class BackendConnection extends Client {
  readonly #use: ConnectionUse;

  constructor(origin: URL, options: Client.Options, connector: buildConnector.connector) {
    const use: ConnectionUse = { socket: undefined, used: false };
    super(origin, {
      ...options,
      connect: (where, connected) =>
        connector(where, (...made) => {
          const [, socket] = made;
          if (socket !== null) {
            use.socket = socket;
            use.used = false;
          }
          connected(...made);
        }),
    });
    this.#use = use;
  }

  override dispatch(
    options: Dispatcher.DispatchOptions,
    handler: Dispatcher.DispatchHandler,
  ): boolean {
    if (handler instanceof Relay) handler.goesOn(this.#use);
    return super.dispatch(options, handler);
  }
}
