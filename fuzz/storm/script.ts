import type { Socket } from "node:net";
import type { Dice } from "../../soak/dice.ts";
import { type Kind, KIND_NAMES, type Kinds } from "./kinds.ts";

/** What an odd backend does next: writes bytes in one segment after a pause, and perhaps ends the connection. */
export interface Step {
  readonly afterMs: number;
  readonly bytes: Buffer;
  readonly close?: "fin" | "rst" | "deaf" | undefined;
}

/** Follows a script, unless the connection ends first. */
export async function follow(socket: Socket, script: readonly Step[]): Promise<void> {
  for (const { afterMs, bytes, close } of script) {
    if (afterMs > 0) await pause(afterMs, socket);
    if (socket.destroyed) return;
    if (bytes.length > 0 && socket.writable) socket.write(bytes);
    if (close === "fin") socket.end();
    else if (close === "rst") socket.resetAndDestroy();
    else if (close === "deaf") socket.pause();
  }
}

/** Waits, at most until the connection closes. */
async function pause(ms: number, socket: Socket): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  socket.once("close", resolve);
  await promise;
  clearTimeout(timer);
  socket.removeListener("close", resolve);
}

/** Returns one of the choices whose kind is part of the storm, or the usual one. */
export function choose<T>(
  dice: Dice,
  kinds: Kinds,
  choices: Partial<Record<Kind, T>>,
  usual: T,
): T {
  const on = KIND_NAMES.flatMap((kind) => {
    const choice = kinds.has(kind) ? choices[kind] : undefined;
    return choice === undefined ? [] : [choice];
  });
  return on[dice.between(0, on.length) - 1] ?? usual;
}

/** A time before an answer: mostly none, sometimes so long that the client has left or lost its token. */
export function lateness(dice: Dice): number {
  return dice.pick([0, 0, 0, dice.between(1, 60), dice.between(60, 400), dice.between(400, 1_800)]);
}

/** Statuses that make no answer, or none that HTTP knows. */
export const ODD_STATUSES = ["600", "999", "099", "000", "20", "2000", "abc", "101", "-1", ""];

/** Fields that HTTP/2 forbids (RFC 9113 §8.2.2), or that Node's check refuses. */
export const FORBIDDEN: readonly (readonly [string, string])[] = [
  ["http2-settings", "AAMAAABkAAQAAP__"],
  ["connection", "close"],
  ["keep-alive", "timeout=5"],
  ["proxy-connection", "keep-alive"],
  ["transfer-encoding", "chunked"],
  ["upgrade", "h2c"],
  ["te", "gzip"],
];
