import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Log } from "../core/log.ts";
import { SingleFlight } from "../lib/single-flight.ts";

interface Readiness {
  readonly ready: boolean;
  /** What was looked at, and a word on how it is. */
  readonly checks: Readonly<Record<string, string>>;
}

export interface AdminOptions {
  readonly host: string;
  /** 0 for one that the system chooses. */
  readonly port: number;
  readonly metricsText: () => Promise<string>;
  readonly metricsContentType: string;
  readonly ready: () => Readiness;
  readonly log: Log;
}

export interface Admin {
  readonly address: string;
  readonly port: number;
  /** Stops listening; answers under way are finished, for a second at most. */
  close(): Promise<void>;
}

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

const TEXT = "text/plain; charset=utf-8";
const CLOSE_TIMEOUT = 1000;

/**
 * Starts the admin listener: plain HTTP with `/metrics`, `/livez` and `/readyz`, small limits, and nothing of the main
 * listener's. What Node's parser refuses, Node answers (400, 408, 431) and closes. Rejects when the address cannot be
 * listened on.
 */
export async function startAdmin(options: AdminOptions): Promise<Admin> {
  const pages = adminPages(options);
  const server = createServer(
    {
      requestTimeout: 10_000,
      headersTimeout: 5_000,
      connectionsCheckingInterval: 1_000,
      maxHeaderSize: 8 * 1024,
    },
    (request, response) => void answer(request, response, pages, options.log),
  );
  server.maxConnections = 100;
  const { address, port } = await listening(server, options);
  server.on("error", (error) => options.log.error("admin listener failed", { error }));
  return { address, port, close: () => closed(server) };
}

type Page = (query: string) => Answer | Promise<Answer>;

function adminPages(options: AdminOptions): ReadonlyMap<string, Page> {
  const scrapes = new SingleFlight<string>();
  return new Map<string, Page>([
    [
      "/metrics",
      async () => ({
        status: 200,
        type: options.metricsContentType,
        body: await scrapes.run("metrics", options.metricsText),
      }),
    ],
    ["/livez", () => ({ status: 200, type: TEXT, body: "ok\n" })],
    ["/readyz", (query) => readinessAnswer(options.ready(), query)],
  ]);
}

function readinessAnswer({ ready, checks }: Readiness, query: string): Answer {
  const lines = [ready ? "ready" : "not ready"];
  if (new URLSearchParams(query).has("verbose")) {
    for (const [name, state] of Object.entries(checks)) lines.push(`${name}: ${state}`);
  }
  return { status: ready ? 200 : 503, type: TEXT, body: `${lines.join("\n")}\n` };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  pages: ReadonlyMap<string, Page>,
  log: Log,
): Promise<void> {
  const [path = "", query = ""] = (request.url ?? "").split("?", 2);
  const page = pages.get(path);
  if (page === undefined) {
    send(response, failure(404, "There is nothing at this address"));
  } else if (request.method !== "GET" && request.method !== "HEAD") {
    response.setHeader("Allow", "GET, HEAD");
    send(response, failure(405, "This method is not allowed here"));
  } else {
    try {
      send(response, await page(query));
    } catch (error) {
      log.error("admin page failed", { path, error });
      send(response, failure(500, "Something went wrong inside the proxy"));
    }
  }
}

function failure(status: number, message: string): Answer {
  return {
    status,
    type: "application/json",
    body: `${JSON.stringify({ message, success: false })}\n`,
  };
}

/** Node itself leaves the body out where the request was HEAD. Whatever body the client sends is not waited for. */
function send(response: ServerResponse, { status, type, body }: Answer): void {
  const { headers } = response.req;
  const hasBody =
    headers["transfer-encoding"] !== undefined || Number(headers["content-length"]) > 0;
  if (hasBody) response.setHeader("Connection", "close");
  response.writeHead(status, {
    "Content-Type": type,
    "Content-Length": Buffer.byteLength(body),
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
  });
  response.end(body);
}

async function listening(
  server: Server,
  { host, port }: { host: string; port: number },
): Promise<AddressInfo> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject);
  server.listen({ host, port }, resolve);
  await promise;
  server.off("error", reject);
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("not listening on a port");
  return address;
}

async function closed(server: Server): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.close(() => resolve());
  const timer = setTimeout(() => server.closeAllConnections(), CLOSE_TIMEOUT);
  await promise;
  clearTimeout(timer);
}
