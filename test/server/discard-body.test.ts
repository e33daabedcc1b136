import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { discardBody, discardUnreadBody } from "../../src/server/listener/discard-body.ts";
import { listeningPort } from "../support/listening-port.ts";
import { chunked, exchange, openSocket, request } from "../support/raw-client.ts";

const MIB = 1024 * 1024;

let server: Server;
const arrived: IncomingMessage[] = [];
const results: Promise<boolean>[] = [];

beforeAll(async () => {
  server = createServer((message, response) => {
    arrived.push(message);
    if (message.url === "/discard") {
      const result = discardBody(message);
      results.push(result);
      void result.then(() => response.end("done"));
    } else {
      response.end("done");
      discardUnreadBody(message);
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

const post = (path: string, length: number, body = "x".repeat(length)): string =>
  request([`POST ${path} HTTP/1.1`, "Host: a", `Content-Length: ${length}`], body);
const NEXT = request(["GET /next HTTP/1.1", "Host: a"]);

async function latest(): Promise<boolean> {
  const result = results.pop();
  if (result === undefined) throw new Error("nothing arrived");
  return result;
}

describe("the rest of a body", () => {
  test.each([
    ["nothing", post("/discard", 0)],
    ["a little", post("/discard", 5)],
    ["as much as is read", post("/discard", MIB)],
    [
      "chunks",
      request(
        ["POST /discard HTTP/1.1", "Host: a", "Transfer-Encoding: chunked"],
        chunked("x".repeat(300_000)),
      ),
    ],
  ])("is discarded, and the next request is served: %s", async (_name, bytes) => {
    const peer = { port: listeningPort(server) };
    const { responses } = await exchange(peer, bytes + NEXT, { responses: 2 });
    expect(responses.map(({ status }) => status)).toEqual([200, 200]);
    expect(await latest()).toBe(true);
  });

  test("is not read completely if it is too large or never arrives", async () => {
    const peer = { port: listeningPort(server) };
    await exchange(peer, post("/discard", 2 * MIB));
    expect(await latest()).toBe(false);
    await exchange(peer, post("/discard", 10, "x"));
    expect(await latest()).toBe(false);
  });

  test("counts as incomplete when the client disconnects", async () => {
    const socket = await openSocket({ port: listeningPort(server) });
    const arriving = once(server, "request");
    socket.write(post("/discard", 10, "x"));
    await arriving;
    socket.destroy();
    expect(await latest()).toBe(false);
  });
});

describe("discarding after the response", () => {
  test("ends the connection of a client that sends too much", async () => {
    const exchanged = await exchange(
      { port: listeningPort(server) },
      post("/finish", 8 * MIB, "x".repeat(2 * MIB)) + NEXT,
      { responses: Infinity },
    );
    expect(exchanged.ended).toBe("closed");
    expect(exchanged.responses.length).toBeLessThanOrEqual(1);
  });

  test("does nothing when everything has been read", async () => {
    const peer = { port: listeningPort(server) };
    const { responses } = await exchange(peer, NEXT + NEXT, { responses: 2 });
    expect(responses).toHaveLength(2);
    const listeners = arrived.splice(0).map((message) => message.listenerCount("data"));
    expect(new Set(listeners)).toEqual(new Set([0]));
  });
});
