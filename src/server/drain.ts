import { setTimeout as after } from "node:timers/promises";
import type { Log } from "../core/log.ts";
import type { Listener } from "./listen.ts";

export interface DrainOptions {
  readonly listener: Listener;
  /** Milliseconds: how long new requests are still served, and how long what runs may go on after that. */
  readonly delay: number;
  readonly timeout: number;
  readonly closeWebSockets: () => void;
  readonly log: Log;
}

/** How often it looks for connections that have become idle, in milliseconds. */
const LOOK_EVERY_MS = 100;

/**
 * The orderly end of the listener. Whoever routes traffic here has `delay` to learn that readiness fails; then nothing new
 * is taken, WebSockets are asked to leave, and what runs may finish until `timeout`.
 *
 * @returns whether everything ended by itself.
 */
export async function drain(options: DrainOptions): Promise<boolean> {
  const { listener, delay, timeout, closeWebSockets, log } = options;
  log.info("draining", { delay_ms: delay, timeout_ms: timeout });
  listener.announceClose();
  await after(delay);
  const closed = listener.close();
  const dismiss = (): void => {
    listener.closeIdle();
    closeWebSockets();
  };
  dismiss();
  // An answer that began before the drain said keep-alive: Node leaves its connection open until the client ends it.
  const looking = setInterval(dismiss, LOOK_EVERY_MS);
  const limit = new AbortController();
  const finished = await Promise.race([
    closed.then(() => true),
    after(timeout, false, { signal: limit.signal }).catch(() => false),
  ]);
  limit.abort();
  clearInterval(looking);
  if (!finished) {
    log.warn("what was still running was ended");
    listener.closeAll();
    await closed;
  }
  return finished;
}
