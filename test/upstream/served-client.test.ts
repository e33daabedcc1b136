/** Which clients count as served in fair reading: they come before strangers. */
import { createServer } from "node:http";
import type { Socket } from "node:net";
import { expect, test } from "vitest";
import type { Identity } from "../../src/core/request/identity.ts";
import { mintPermit } from "../../src/core/request/permit.ts";
import { Transfer } from "../../src/core/request/transfer.ts";
import { forwarderTo } from "../support/forwarder.ts";
import { listening } from "../support/listening.ts";
import { identityWith, requestWith, routeWith } from "../support/permit.ts";
import { startRawBackend } from "../support/raw-backend.ts";
import { until } from "../support/until.ts";

const WHOLE = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const HALF = "HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\nok";

/** Returns how many connections were reported as served after one response. */
async function reportedAfter(write: string, identity: Identity | undefined): Promise<number> {
  await using backend = await startRawBackend(() => ({ write, then: "close" }));
  const told: Socket[] = [];
  const served = (socket: Socket): void => void told.push(socket);
  const { upstream, forwarder } = forwarderTo(backend.url, { served });
  const route = routeWith({ auth: identity === undefined ? "none" : "required" });
  const permit = mintPermit(requestWith(), route, identity);
  let over = false;
  const server = createServer((request, response) => {
    const forwarded = forwarder.forward(permit, request, response, new Transfer());
    void Promise.resolve(forwarded).finally(() => (over = true));
  });
  await using front = await listening(server);
  await fetch(`http://127.0.0.1:${front.port}/`)
    .then((answer) => answer.text())
    .catch(() => undefined);
  await until(() => over);
  await upstream.close();
  return told.length;
}

test.each([
  ["a complete response to a caller with a token", WHOLE, identityWith(), 1],
  ["a complete response without a token", WHOLE, undefined, 0],
  ["an aborted response", HALF, identityWith(), 0],
])("%s", async (_name, write, identity, count) => {
  expect(await reportedAfter(write, identity)).toBe(count);
});
