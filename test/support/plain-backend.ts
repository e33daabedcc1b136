import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { listeningPort } from "./listening-port.ts";

export interface PlainBackend extends AsyncDisposable {
  readonly url: string;
}

/** A backend that does with a request what the test says. */
export async function startPlainBackend(listener: RequestListener): Promise<PlainBackend> {
  const server = createServer(listener);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${listeningPort(server)}`,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}
