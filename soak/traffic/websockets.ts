import { WebSocket } from "ws";
import type { Got } from "../accounts/asked.ts";
import { OPEN } from "../deployment/configuration.ts";
import type { World } from "./kind.ts";

/** How a conversation ends: the client or the backend closes it, or the backend drops the connection. */
const ENDINGS = ["close by the client", "close", "drop"] as const;

/** Holds a conversation: every message is echoed, then one side ends it. */
export function converse(world: World, kind: string): Promise<void> {
  const { dice } = world;
  const turns = dice.between(1, 20);
  const ending = dice.pick(ENDINGS);
  return connect(world, kind, "/echo", [101], (socket, report) => {
    let turn = 0;
    const next = (): void => {
      if (turn < turns) socket.send(`turn ${turn}`);
      else if (ending === "close by the client") socket.close(1000);
      else socket.send(ending);
    };
    socket.on("open", next);
    socket.on("message", (message: Buffer) => {
      if (message.toString() !== `turn ${turn}`) report({ what: "broke", why: "another message" });
      turn += 1;
      next();
    });
    socket.on("close", (code) => {
      const wanted = ending === "drop" ? 1006 : 1000;
      const whole = turn === turns && code === wanted;
      report(whole ? switched() : { what: "broke", why: `${ending}: ${code} after ${turn} turns` });
    });
  });
}

/** Drops the client's connection during the conversation. */
export function leaveWebSocket(world: World, kind: string): Promise<void> {
  return connect(world, kind, "/echo", [101], (socket, report) => {
    socket.on("open", () => socket.send("hello"));
    socket.on("message", () => socket.terminate());
    socket.on("close", () => report({ what: "left" }));
  });
}

/** Opens a WebSocket that the backend refuses. */
export function refusedWebSocket(world: World, kind: string): Promise<void> {
  return connect(world, kind, "/refuse", [409], (socket, report) => {
    socket.on("close", (code) => report({ what: "broke", why: `switched, then ${code}` }));
  });
}

async function connect(
  { client, ledger, tokens }: World,
  kind: string,
  path: string,
  right: readonly number[],
  talk: (socket: WebSocket, report: (got: Got) => void) => void,
): Promise<void> {
  const id = client.nextId();
  const startedMs = performance.now();
  const { ca, port } = client.place;
  const headers = { "x-request-id": id, authorization: `Bearer ${tokens.own}` };
  const { promise, resolve } = Promise.withResolvers<Got>();
  const socket = new WebSocket(`wss://127.0.0.1:${port}${OPEN}${path}`, { ca, headers });
  socket.on("unexpected-response", (request, response) => {
    resolve({ ...switched(), status: response.statusCode ?? 0 });
    response.resume();
    request.destroy();
  });
  socket.on("error", (error) => resolve({ what: "broke", why: error.message }));
  talk(socket, resolve);
  const patience = setTimeout(() => socket.terminate(), PATIENCE_MS);
  const got = await promise;
  clearTimeout(patience);
  ledger.asked({ id, kind, startedMs, endedMs: performance.now(), right, got });
}

/** In milliseconds; the longest conversation takes a fraction of it. */
const PATIENCE_MS = 30_000;

function switched() {
  return { what: "answer", status: 101, envelopeId: undefined, fault: undefined } as const;
}
