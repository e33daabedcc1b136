import { setFlagsFromString } from "node:v8";
import { garbageCollector } from "../../lib/node-internals/node-sockets.ts";

/** The young generation of all traffic threads together, in MiB. Like V8's flag, counts one of its two semi-spaces. */
const ALL_SEMI_SPACES_MIB = 8;
const SMALLEST_SEMI_SPACE_MIB = 2;
/** V8's own default. */
const V8_MARKING_THREADS = 7;

/**
 * Sets V8 flags that apply to every thread started from now on. `resourceLimits` cannot, since the flags in the image
 * take precedence.
 *
 * - All threads together get the young generation of one thread. Four busy workers over TLS used 36 to 40 MiB less; a
 * small request cost the same (with 2 MiB and with 4 MiB 0.97 of the cost with 8 MiB, in interleaved rounds).
 * - Maglev, the compiler between Sparkplug and TurboFan, is off. All threads compile the same functions at the same
 * time, and the waiting Maglev jobs of each thread use up to 20 MiB.
 * - The old generation grows by 2 MiB between two collections instead of 8 MiB: up to 25 MiB less for four workers.
 * - Marking uses all threads of V8 again. The image allows only one, because several would take the core from a single
 * worker. With several workers, memory is scarcer: with one marking thread, four workers used 3 MiB more under attack.
 */
export function keepThreadsSmall(count: number): void {
  const share = Math.max(SMALLEST_SEMI_SPACE_MIB, Math.floor(ALL_SEMI_SPACES_MIB / count));
  setFlagsFromString(`--max-semi-space-size=${share}`);
  setFlagsFromString("--no-maglev");
  setFlagsFromString("--memory-saver-mode");
  setFlagsFromString(`--concurrent-marking-max-worker-num=${V8_MARKING_THREADS}`);
}

/** Collects the garbage of this thread's start: 2 MiB in a worker, 6 MiB in the main thread. Takes about 20 ms. */
export function collectStart(): void {
  garbageCollector()({ type: "major", flavor: "last-resort" });
}
