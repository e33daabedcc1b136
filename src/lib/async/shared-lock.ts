const FREE = 0;
const HELD = 1;
/** Attempts before the first nap. They take some microseconds, as long as a holder usually keeps the lock. */
const SPINS = 500;
/** How long a thread waits each time for a holder that was interrupted, in milliseconds, and how many times. */
const NAP_MS = 1;
const NAPS = 5;

/**
 * Runs short work while holding the lock at this place of `locks`, so that no other thread runs work for the same
 * place. The work must neither wait nor lock again.
 *
 * The holder may have been terminated, and an event loop must not block on it: after about 5 ms, the lock is taken
 * over. The guarded data must tolerate that: the resulting error must be temporary.
 */
export function withLock<Result>(
  locks: Int32Array<SharedArrayBuffer>,
  place: number,
  work: () => Result,
): Result {
  lock(locks, place);
  try {
    return work();
  } finally {
    Atomics.store(locks, place, FREE);
  }
}

function lock(locks: Int32Array<SharedArrayBuffer>, place: number): void {
  const taken = (): boolean => Atomics.compareExchange(locks, place, FREE, HELD) === FREE;
  for (let spin = 0; spin < SPINS; spin += 1) if (taken()) return;
  for (let nap = 0; nap < NAPS; nap += 1) {
    // Nobody calls `Atomics.notify`: that would cost each holder.
    Atomics.wait(locks, place, HELD, NAP_MS);
    if (taken()) return;
  }
}
