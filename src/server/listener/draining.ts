import { setTimeout as after } from "node:timers/promises";
import type { Log } from "../../core/log.ts";
import type { Listener } from "./listen.ts";
import { withTimeout } from "../../lib/async/with-timeout.ts";

export interface DrainOptions {
  readonly listener: Pick<
    Listener,
    "announceClose" | "close" | "closeIdle" | "refuseAll" | "closeAll"
  >;
  /** How long new requests are still accepted, and how long running ones may take after that, in milliseconds. */
  readonly delay: number;
  readonly timeout: number;
  readonly closeWebSockets: () => void;
  readonly log: Log;
}

/** How often idle connections are closed, in milliseconds. */
const CHECK_INTERVAL_MS = 100;
/** How long clients may take to read the refusal of an aborted request, in milliseconds. */
const LAST_ANSWERS_MS = 300;

/**
 * Drains the listener. For `delay`, load balancers can notice that readiness fails; then no new connection is
 * accepted, WebSockets are asked to close, and running requests may finish until `timeout`.
 *
 * @returns whether all requests finished in time.
 */
export async function drain(options: DrainOptions): Promise<boolean> {
  const { listener, delay, timeout, closeWebSockets, log } = options;
  log.info("draining", { delay_ms: delay, timeout_ms: timeout });
  listener.announceClose();
  await after(delay);
  const closed = listener.close();
  const closeIdle = (): void => {
    listener.closeIdle();
    closeWebSockets();
  };
  closeIdle();
  // A response that began before the drain promised keep-alive: Node leaves its connection open until the client
  // closes it.
  const checking = setInterval(closeIdle, CHECK_INTERVAL_MS);
  const answered = closed.then(() => true);
  const finished = await withTimeout(answered, timeout, false);
  clearInterval(checking);
  if (!finished) {
    log.warn("requests that were still running were ended");
    listener.refuseAll();
    await withTimeout(closed, LAST_ANSWERS_MS, undefined);
    listener.closeAll();
    await closed;
  }
  return finished;
}
