import { once } from "node:events";
import { createServer, get, type IncomingMessage, type ServerResponse } from "node:http";
import { expect, it, onTestFinished } from "vitest";
import { bytesBufferedOn } from "../../src/server/listener/connection-ledger.ts";
import { listening } from "../support/listening.ts";

const FIELD_BYTES = 10_000;

it("counts two copies of the head of a response, even after the client has read it", async () => {
  const { promise, resolve } = Promise.withResolvers<[IncomingMessage, ServerResponse]>();
  const server = createServer((request, response) => resolve([request, response]));
  await using standing = await listening(server);
  const client = get({ port: standing.port, host: "127.0.0.1" }).on("error", () => undefined);
  onTestFinished(() => void client.destroy());
  const [{ socket }, response] = await promise;
  expect(bytesBufferedOn(socket, 0)).toBe(0);
  response.writeHead(200, { "X-Long": "x".repeat(FIELD_BYTES) }).write("begun");
  await once(client, "response");
  expect(response.writableLength).toBe(0);
  const bytes = bytesBufferedOn(socket, 0);
  expect(bytes).toBeGreaterThan(2 * FIELD_BYTES);
  expect(bytes).toBeLessThan(2 * FIELD_BYTES + 1_000);
  response.end();
  await expect.poll(() => bytesBufferedOn(socket, 0)).toBe(0);
});
