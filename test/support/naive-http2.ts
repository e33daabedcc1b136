import { Agent, request as httpRequest } from "node:http";
import { createSecureServer } from "node:http2";
import { testCertificates } from "./certificates.ts";
import { listening } from "./listening.ts";
import type { Peer } from "./raw-client.ts";

/**
 * Translates HTTP/2 to HTTP/1.1 and pipes bodies unchanged, although Node adds no framing to those of GET or DELETE.
 */
export async function startNaiveHttp2(target: string): Promise<Peer & AsyncDisposable> {
  const { server: pair, ca } = await testCertificates();
  const agent = new Agent({ keepAlive: true });
  const server = createSecureServer({ ...pair, allowHTTP1: true }, (request, response) => {
    const toBackend = httpRequest(
      new URL(request.url, target),
      { method: request.method, headers: { host: "localhost" }, agent },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502);
        answer.pipe(response);
      },
    );
    toBackend.on("error", () => response.destroy());
    request.pipe(toBackend);
  });
  const standing = await listening(server);
  return {
    port: standing.port,
    ca,
    async [Symbol.asyncDispose]() {
      agent.destroy();
      await standing[Symbol.asyncDispose]();
    },
  };
}
