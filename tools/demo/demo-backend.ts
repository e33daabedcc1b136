import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "../../src/lib/http/node-http.ts";

/** The backend of the demo, which echoes the requests that it receives. */
export interface DemoBackend extends AsyncDisposable {
  readonly url: string;
}

const EVERY_MS = 1_000;

/** Starts the backend on a free port of 127.0.0.1. */
export async function startDemoBackend(): Promise<DemoBackend> {
  const server = createServer((request, response) => {
    request.resume();
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://backend.invalid");
    if (pathname === "/events") sendEvents(response, Number(searchParams.get("count") ?? Infinity));
    else echo(request, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function echo({ method, url, headers }: IncomingMessage, response: ServerResponse): void {
  const shown = Object.entries(headers).filter(([name]) => /^x-|^authorization$/.test(name));
  const text = JSON.stringify({ method, path: url, headers: Object.fromEntries(shown) }, null, 2);
  response.setHeader("Content-Type", "application/json");
  response.end(`${text}\n`);
}

/** Sends Server-Sent Events, one per second, until `count` is reached or the client leaves. */
function sendEvents(response: ServerResponse, count: number): void {
  response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
  let sent = 0;
  const send = (): void => {
    if (response.writableEnded) return;
    sent += 1;
    response.write(`data: event ${sent}\n\n`);
    if (sent >= count) response.end();
  };
  const timer = setInterval(send, EVERY_MS);
  response.on("close", () => clearInterval(timer));
  send();
}
