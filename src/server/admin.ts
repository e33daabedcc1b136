import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import {
  type AdminAnswer,
  type AdminPage,
  type AdminRequest,
  JSON_TYPE,
} from "../core/admin-page.ts";
import type { Log } from "../core/log.ts";
import { createServer } from "../lib/node-http.ts";
import { type AdminAccess, accessRefusal } from "./admin-access.ts";
import { limitConnections } from "./connection-limit.ts";

export interface AdminOptions extends AdminAccess {
  /** 0 for one that the system chooses. */
  readonly port: number;
  readonly pages: readonly AdminPage[];
  readonly log: Log;
}

export interface Admin {
  readonly address: string;
  readonly port: number;
  /** Stops listening; answers under way are finished, for a second at most. */
  close(): Promise<void>;
}

const CLOSE_TIMEOUT = 1000;

/** The most open connections; of one address that is not allowed more; of all those. The rest is for who is allowed more. */
const CONNECTIONS = { all: 512, perAddress: 16, together: 256 };

/**
 * Starts the admin listener: plain HTTP with the given pages, small limits, and nothing of the main listener's. What Node's
 * parser refuses, Node answers (400, 408, 431) and closes. Rejects when the address cannot be listened on.
 */
export async function startAdmin(options: AdminOptions): Promise<Admin> {
  const server = createServer(
    {
      requestTimeout: 10_000,
      headersTimeout: 5_000,
      connectionsCheckingInterval: 1_000,
      // Four times what the main listener takes by default: it is asked about requests that are too large, too.
      maxHeaderSize: 64 * 1024,
    },
    (request, response) => void respond(request, response, options),
  );
  server.maxConnections = CONNECTIONS.all;
  limitConnections(server, {
    perAddress: () => CONNECTIONS.perAddress,
    // As they are: pods of one node often share a /64, and the kubelet with them.
    clientOf: (address) => address,
    together: () => CONNECTIONS.together,
    exempt: options.allow,
    refused: () => options.log.debug("an admin connection was refused"),
  });
  const { address, port } = await listening(server, options);
  server.on("error", (error) => options.log.error("admin listener failed", { error }));
  return { address, port, close: () => closed(server) };
}

async function respond(
  request: IncomingMessage,
  response: ServerResponse,
  options: AdminOptions,
): Promise<void> {
  const [path = "", query = ""] = (request.url ?? "").split("?", 2);
  const pages = options.pages.filter((page) => page.path === path);
  const page = pages.find(({ method }) => method === methodOf(request));
  const refusal = refusalOf(request, pages, page, options);
  if (refusal !== undefined || page === undefined) {
    if (refusal?.status === 405) response.setHeader("Allow", allowed(pages));
    send(response, refusal ?? failure(404, "There is nothing at this address"));
    return;
  }
  const asked: AdminRequest = { query: new URLSearchParams(query), headers: request.headers };
  try {
    send(response, await page.answer(asked));
  } catch (error) {
    options.log.error("admin page failed", { path, error });
    send(response, failure(500, "Something went wrong inside the proxy"));
  }
}

function methodOf({ method }: IncomingMessage): string | undefined {
  return method === "HEAD" ? "GET" : method;
}

function refusalOf(
  request: IncomingMessage,
  pages: readonly AdminPage[],
  page: AdminPage | undefined,
  access: AdminAccess,
): AdminAnswer | undefined {
  if (pages.length === 0) return failure(404, "There is nothing at this address");
  const restricted = pages.some(({ audience }) => audience === "allowed");
  const forbidden = restricted ? accessRefusal(request, access) : undefined;
  if (forbidden !== undefined) return failure(403, forbidden);
  return page === undefined ? failure(405, "This method is not allowed here") : undefined;
}

function allowed(pages: readonly AdminPage[]): string {
  return pages.map(({ method }) => (method === "GET" ? "GET, HEAD" : method)).join(", ");
}

function failure(status: number, message: string): AdminAnswer {
  return { status, type: JSON_TYPE, body: `${JSON.stringify({ message, success: false })}\n` };
}

/** Node itself leaves the body out where the request was HEAD. Whatever body the client sends is not waited for. */
function send(response: ServerResponse, { status, type, body }: AdminAnswer): void {
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
