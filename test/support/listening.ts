import { once } from "node:events";
import { Server as HttpServer } from "node:http";
import { Server as HttpsServer } from "node:https";
import type { Server } from "node:net";
import { listeningPort } from "./listening-port.ts";

export interface Listening extends AsyncDisposable {
  readonly port: number;
  /** `http://127.0.0.1:…`. */
  readonly url: string;
}

/** Listens on a port assigned by the system until disposed. Disposing of an HTTP server closes all its connections. */
export async function listening(server: Server): Promise<Listening> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const port = listeningPort(server);
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.close();
      if (server instanceof HttpServer || server instanceof HttpsServer) {
        server.closeAllConnections();
      }
      await once(server, "close");
    },
  };
}
