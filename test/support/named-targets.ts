import { once } from "node:events";
import { createServer, type Server as HttpServer } from "node:http";
import type { AddressInfo, Server } from "node:net";
import { type afterAll, afterEach } from "vitest";
import { ask } from "./ask.ts";
import { startDnsServer } from "./dns-server.ts";
import { type Sallyport, startSallyport } from "./sallyport.ts";

/**
 * Starts the parts of tests with targets given by name.
 *
 * @param cleanUp when everything is closed: by default after each test of the calling file.
 */
export function useNamedTargets(cleanUp: typeof afterEach | typeof afterAll = afterEach) {
  let stack = new AsyncDisposableStack();
  cleanUp(async () => {
    const used = stack;
    stack = new AsyncDisposableStack();
    await used.disposeAsync();
  });

  async function listen(server: Server, host: string, port = 0): Promise<number> {
    server.listen(port, host);
    await once(server, "listening");
    stack.defer(() => void server.close());
    return (server.address() as AddressInfo).port;
  }

  return {
    listen,

    /** Starts backends on several addresses with the same port. */
    async backends(...addresses: string[]) {
      const servers = new Map<string, HttpServer>();
      let port = 0;
      for (const address of addresses) {
        const server = answering(address);
        servers.set(address, server);
        port = await listen(server, address, port);
      }
      return { port, servers };
    },

    async start(
      upstream: object,
      route: object = {},
      files: Readonly<Record<string, string>> = {},
    ): Promise<Sallyport> {
      return stack.use(
        await startSallyport({
          target: "http://127.0.0.1:9",
          files,
          config: {
            upstreams: { app: upstream },
            routes: [{ name: "all", path: "/", upstream: "app", ...route }],
          },
        }),
      );
    },

    async names(zone: Parameters<typeof startDnsServer>[0], ttl?: number) {
      return stack.use(await startDnsServer(zone, ttl));
    },
  };
}

/** Creates a backend that answers with its loopback address and the `Host` it received. */
const answering = (address: string): HttpServer =>
  createServer((request, response) => {
    request.resume();
    const answer = (): void => void response.end(`${address} ${request.headers.host}`);
    if (request.url === "/slow") setTimeout(answer, 400);
    else answer();
  });

/** Sends requests. @returns the distinct addresses that answered, or the status codes of failures, sorted. */
export async function reached(gate: Sallyport, requests = 8, path = "/x"): Promise<string[]> {
  const found = new Set<string>();
  for (let i = 0; i < requests; i += 1) {
    const { status, body } = await ask(gate, path, { token: gate.token });
    found.add(status === 200 ? (body.split(" ")[0] ?? "") : String(status));
  }
  return [...found].toSorted();
}
