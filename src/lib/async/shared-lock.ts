const FREE = 0;
const HELD = 1;
/** Some microseconds: as long as others need for what a lock is for. */
const SPINS = 500;
/** How long a thread waits for one that was interrupted while it held the lock, in milliseconds, and how often. */
const NAP_MS = 1;
const NAPS = 5;

/**
 * Does something short that no other thread does meanwhile for the same place of `locks`. It must not wait, and not lock again.
 *
 * The holder may have been terminated, and an event loop must not stand still for it: after some 5 ms the lock
 * is taken over. What it guards must bear that, by an error that does not last.
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
    // Nobody notifies: that would cost each holder.
    Atomics.wait(locks, place, HELD, NAP_MS);
    if (taken()) return;
  }
}
