import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { expect, onTestFinished } from "vitest";
import { systemClock } from "../../src/lib/clock.ts";
import { SharedState } from "../../src/shared/shared-state.ts";
import { type StatePlace, stateServerAt } from "../../src/shared/state-server.ts";
import { listeningPort } from "./listening-port.ts";
import { recordedLog } from "./recorded-log.ts";
import { until } from "./until.ts";

/** What a hostile server sends in reply to anything: bytes, or a function that writes to the socket. */
export type HostileAnswer =
  | string
  | Buffer
  | ((socket: Socket, ownPort: number, command: string) => void);

/**
 * A server that speaks the Redis protocol and answers every command, even the login, with `answer`. Closed after the
 * test.
 */
export interface HostileServer {
  readonly port: number;
  /** The commands received so far. */
  readonly heard: readonly string[];
  /** The number of connections so far. */
  readonly connections: () => number;
}

/**
 * Starts a hostile server.
 *
 * @param polite whether it accepts the commands at the start of a connection.
 */
export async function startHostileStateServer(
  answer: HostileAnswer,
  { polite }: { readonly polite: boolean },
): Promise<HostileServer> {
  const sockets = new Set<Socket>();
  const heard: string[] = [];
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("data", (data: Buffer) => {
      const text = data.toString("latin1");
      for (const command of polite ? text.split(/(?=\*\d+\r\n\$)/) : [text]) {
        heard.push(command);
        if (polite && /\r\n(?:auth|select|client)\r\n/i.test(command)) socket.write("+OK\r\n");
        else if (typeof answer === "function") answer(socket, listeningPort(server), command);
        else socket.write(answer);
      }
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port: listeningPort(server), heard, connections: () => sockets.size };
}

/** Sends `start`, then `piece` repeatedly, as fast as the client reads. */
export const flood =
  (start: string, piece: string) =>
  (socket: Socket): void => {
    const pieces = Buffer.from(piece.repeat(Math.ceil(65_536 / piece.length)));
    socket.write(start);
    const more = (): void => {
      while (!socket.destroyed && socket.write(pieces));
    };
    socket.on("drain", more);
    more();
  };

/**
 * Uses a hostile server as shared state, and expects that the replica logs exactly one warning, accepts no data, and
 * never blocks.
 *
 * @param place how the replica reaches the server.
 * @param warned awaited after the warning, before the replica stops.
 * @returns the number of connections before the replica stopped.
 */
export async function expectHarmlessState(
  { port, connections }: HostileServer,
  place: Omit<StatePlace, "server">,
  warned: () => Promise<void> = () => Promise.resolve(),
): Promise<number> {
  const log = recordedLog();
  const server = stateServerAt(`redis://:of-the-test@127.0.0.1:${port}`);
  const state = new SharedState({
    place: { server, ...place },
    prefix: "test:",
    timeout: 50,
    log,
    clock: systemClock,
    observer: { sharedStateAsked: () => undefined },
  });
  const received: unknown[] = [];
  await state.begin(
    { attemptEnded: (...end) => received.push(end), revoked: (all) => received.push(all) },
    () => [],
  );
  const began = performance.now();
  const revocation = { kind: "token", name: "a", until: Date.now() + 60_000 } as const;
  expect(await state.revoke([revocation])).toBe(false);
  expect(await state.settleRates([{ key: "a", costMs: 1 }])).toBeUndefined();
  expect(await state.settleConcurrency([{ key: "a", requests: 1 }])).toBeUndefined();
  expect(performance.now() - began).toBeLessThan(1_000);
  await until(() => log.lines.some(({ level }) => level === "warn"), 15_000);
  await warned();
  const opened = connections();
  await state.close();
  expect(received).toEqual([]);
  expect(log.lines.filter(({ level }) => level === "warn")).toHaveLength(1);
  expect(JSON.stringify(log.lines)).not.toMatch(/of-the-test|\\u001b/);
  return opened;
}
