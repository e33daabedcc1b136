/** The events of a body as it flows. Its source is a Node request that the test fills. */
import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { expect, it } from "vitest";
import { RequestBody } from "../../src/upstream/http/client-body.ts";
import { until } from "../support/until.ts";

const KIB = 1024;

function start() {
  const source = new IncomingMessage(new Socket());
  const events: string[] = [];
  let received = 0;
  const body = new RequestBody(source, Infinity, {
    received: (chunk) => void (received += chunk.length),
    ended: () => undefined,
    awaited: () => void events.push("awaited"),
    supplied: () => void events.push("supplied"),
  });
  const send = async (bytes: number): Promise<void> => {
    const before = received;
    source.push(Buffer.alloc(bytes));
    await until(() => received === before + bytes);
  };
  return { source, body, events, send };
}

it("is awaited once the backend wants it, and again after every 16 KiB", async () => {
  const { body, events, send } = start();
  expect(events).toEqual([]);
  body.resume();
  await until(() => events.length === 1);
  expect(events.splice(0)).toEqual(["awaited"]);
  for (let sent = 1; sent < 16; sent += 1) await send(KIB);
  expect(events).toEqual([]);
  await send(KIB);
  expect(events).toEqual(["awaited"]);
  await send(32 * KIB);
  expect(events).toEqual(["awaited", "awaited"]);
});

it("is not awaited while the backend has enough, or once it is complete", async () => {
  const { source, body, events, send } = start();
  body.resume();
  await until(() => events.length === 1);
  body.pause();
  for (let sent = 0; sent < 4; sent += 1) await send(16 * KIB);
  expect(events.at(-1)).toBe("supplied");
  body.resume();
  await until(() => events.at(-1) === "awaited");
  source.push(null);
  await until(() => events.at(-1) === "supplied");
});
