import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Total of the young generation of all traffic threads, in MiB; V8 counts one of its two semi-spaces. */
const ALL_SEMI_SPACES_MIB = 8;
const SMALLEST_SEMI_SPACE_MIB = 2;
/** V8's own default. */
const V8_MARKING_THREADS = 7;

/**
 * Sets V8 flags that apply to every thread started from now on. `resourceLimits` cannot, since the flags in the image take
 * precedence.
 *
 * - The young generation of one thread is divided among `count`. Four busy workers over TLS took 36 to 40 MiB less; a small
 *   request costs the same (2 MiB: 0.97, 4 MiB: 0.97 of 8 MiB, in interleaved rounds).
 * - Maglev, the compiler between Sparkplug and TurboFan, is off. All threads compile the same functions at the same time,
 *   and the waiting Maglev jobs of each hold up to 20 MiB.
 * - The old generation grows by 2 MiB between two collections, and not by 8 MiB: up to 25 MiB less for four workers.
 * - Marking uses all threads of V8 again. The image allows one, because several take the core from a worker that has only
 *   one; for several workers memory is scarcer, and with one marking thread four took 3 MiB more under attack.
 */
export function keepThreadsSmall(count: number): void {
  const share = Math.max(SMALLEST_SEMI_SPACE_MIB, Math.floor(ALL_SEMI_SPACES_MIB / count));
  setFlagsFromString(`--max-semi-space-size=${share}`);
  setFlagsFromString("--no-maglev");
  setFlagsFromString("--memory-saver-mode");
  setFlagsFromString(`--concurrent-marking-max-worker-num=${V8_MARKING_THREADS}`);
}

/** Collects the garbage of this thread's start: 2 MiB of a worker, 6 of the main thread. Takes about 20 ms. */
export function collectStart(): void {
  setFlagsFromString("--expose-gc");
  const collect: (options: { readonly type: "major"; readonly flavor: "last-resort" }) => void =
    runInNewContext("gc");
  collect({ type: "major", flavor: "last-resort" });
}
