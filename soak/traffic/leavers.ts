import { setTimeout as delay } from "node:timers/promises";
import type { ClientRequest } from "node:http";
import { patternOf } from "../backend/pattern.ts";
import { OPEN } from "../deployment/configuration.ts";
import type { Question } from "./client.ts";
import type { World } from "./kind.ts";

/** Clients that leave before they have their answer. */

/** Begins a request on a new connection, leaves when `leave` resolves, and reports that to the ledger. */
async function leaving(
  { client, ledger, tokens }: World,
  kind: string,
  question: Omit<Question, "right">,
  leave: (sent: ClientRequest) => Promise<unknown>,
): Promise<void> {
  const id = client.nextId();
  const startedMs = performance.now();
  const sent = client.begin(id, { ...question, token: tokens.own, alone: true });
  sent.on("error", () => undefined);
  await leave(sent);
  sent.destroy();
  const endedMs = performance.now();
  ledger.asked({ id, kind, startedMs, endedMs, right: [], got: { what: "left" } });
}

/** Resolves with the first of these events, or after a few seconds. */
function first(sent: ClientRequest, ...events: readonly string[]): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(() => resolve(), 5_000);
  for (const event of ["close", ...events]) sent.once(event, () => resolve());
  return promise.finally(() => clearTimeout(timer));
}

/** Resolves when the connection is open. */
function connected(sent: ClientRequest): Promise<void> {
  sent.once("socket", (socket) => socket.once("secureConnect", () => sent.emit("connected")));
  return first(sent, "connected");
}

export function leaveInUpload(world: World, kind: string): Promise<void> {
  const headers = { "content-length": "500000" };
  const question = { method: "POST", path: `${OPEN}/echo`, headers };
  return leaving(world, kind, question, async (sent) => {
    sent.write(patternOf(world.dice.between(1, 200_000)));
    await connected(sent);
    await delay(world.dice.between(0, 200));
  });
}

export function leaveBeforeAnswer(world: World, kind: string): Promise<void> {
  return leaving(world, kind, { path: `${OPEN}/late?ms=500` }, async (sent) => {
    sent.end();
    await connected(sent);
    await delay(world.dice.between(0, 300));
  });
}

export function leaveInDownload(world: World, kind: string): Promise<void> {
  return leaving(world, kind, { path: `${OPEN}/bytes?size=3000000` }, async (sent) => {
    sent.end();
    sent.on("response", (response) => {
      response.on("error", () => undefined);
      response.once("data", () => sent.emit("begun"));
    });
    await first(sent, "begun");
  });
}
