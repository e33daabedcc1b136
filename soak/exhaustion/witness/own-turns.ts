/** How often the event loop of this program shows that it turns, in milliseconds. */
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
 * How long what is taken up now may have been there already, in milliseconds: this program's event loop did not turn, since
 * others had the processor. Timers come before what has been received, so the turn under way counts as well.
 */
export function ownDelayMs(): number {
  return lateMs + Math.max(0, performance.now() - turnedAt - EVERY_MS);
}
