/** How often the event loop of this program is timed, in milliseconds. */
const EVERY_MS = 2;

let turnedAt = performance.now();
/** How late the last turn was. */
let lateMs = 0;

setInterval(() => {
  const now = performance.now();
  lateMs = Math.max(0, now - turnedAt - EVERY_MS);
  turnedAt = now;
}, EVERY_MS).unref();

/**
 * Returns how long the data that is read now may have been waiting, in milliseconds, because other programs had the CPU and
 * this event loop did not turn. Timers run before received data is read, so the current turn counts as well.
 */
export function ownDelayMs(): number {
  return lateMs + Math.max(0, performance.now() - turnedAt - EVERY_MS);
}
