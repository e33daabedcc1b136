import { setTimeout as delay } from "node:timers/promises";
import { scrape, type Scrape } from "../../test/support/scrape.ts";
import { liveHeap } from "./live-heap.ts";
import { openDescriptors, processState, type ProcessState } from "./process-state.ts";

/** The state of Sallyport without traffic. */
export interface Rest {
  readonly state: ProcessState;
  readonly metrics: Scrape;
  /** The live data on the main thread's heap, after garbage collection. */
  readonly liveHeapBytes: number;
  /** What keeps the event loop alive, by type (`process.getActiveResourcesInfo`). */
  readonly resources: Readonly<Record<string, number>>;
  /** What is not at rest; empty if everything came to rest in time. */
  readonly restless: readonly string[];
}

export interface RestOptions {
  readonly pid: number;
  readonly adminPort: number;
  readonly inspector: string;
  /** The maximum number of sockets. */
  readonly sockets: number;
  /** An earlier rest: no more descriptors, timers and handles than there may be open. */
  readonly base: Rest | undefined;
  /** Another condition: returns a text about what is missing, or undefined. */
  readonly also: () => string | undefined;
  readonly timeoutMs: number;
}

/** Gauges that are 0 without traffic. */
const ZERO_AT_REST = [
  "sallyport_http_requests_in_flight",
  "sallyport_websocket_connections",
  "sallyport_login_queue_length",
] as const;

/** Resources that exist only until the next turn of the event loop, and do not indicate a leak. */
const FLEETING: ReadonlySet<string> = new Set(["Immediate"]);

/** Waits until nothing is running and all descriptors are closed. After the time limit, returns what it found. */
export async function comeToRest(options: RestOptions): Promise<Rest> {
  const { pid, timeoutMs } = options;
  const liveHeapBytes = await liveHeap(options.inspector);
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const metrics = await scrape(options);
    // Waits until the connection of the scrape itself has closed.
    await delay(50);
    const state = processState(pid);
    const found = { state, metrics, liveHeapBytes, resources: resourcesIn(metrics) };
    const restless = whatMoves(found, options);
    if (restless.length === 0 || performance.now() > deadline) return { ...found, restless };
  }
}

/** Returns the types of timers and handles of which `end` has more than `base`, in words. */
export function grownResources(
  base: Pick<Rest, "resources">,
  end: Pick<Rest, "resources">,
): string[] {
  return Object.entries(end.resources)
    .filter(([type, count]) => !FLEETING.has(type) && count > (base.resources[type] ?? 0))
    .map(([type, count]) => `${type}: ${count}, at first ${base.resources[type] ?? 0}`);
}

function whatMoves(found: Omit<Rest, "restless">, options: RestOptions): string[] {
  const { metrics, state } = found;
  const { base } = options;
  const moving = ZERO_AT_REST.filter((gauge) => metrics.sum(gauge) !== 0).map(
    (gauge) => `${gauge} is ${metrics.sum(gauge)}`,
  );
  const sockets = state.descriptors["socket"] ?? 0;
  if (sockets > options.sockets) moving.push(`${sockets} sockets`);
  if (base !== undefined) {
    const open = openDescriptors(state);
    if (open > openDescriptors(base.state)) moving.push(`${open} descriptors`);
    moving.push(...grownResources(base, found));
  }
  const missing = options.also();
  return missing === undefined ? moving : [...moving, missing];
}

function resourcesIn({ series, value }: Scrape): Record<string, number> {
  const found = series.flatMap((name) => {
    const type = /^nodejs_active_resources\{type="(\w+)"\}$/.exec(name)?.[1];
    return type === undefined ? [] : [[type, value(name) ?? 0] as const];
  });
  return Object.fromEntries(found);
}
