import { setTimeout as delay } from "node:timers/promises";
import { ask } from "../../test/support/ask.ts";
import { scrape } from "../../test/support/scrape.ts";
import { openDescriptors, processState } from "./process-state.ts";

/** One sample of the running Sallyport; values are NaN if the admin listener did not answer. */
export interface Sample {
  /** Seconds since the first. */
  readonly seconds: number;
  readonly residentBytes: number;
  /** Live and dead objects on the main thread's heap. */
  readonly heapBytes: number;
  readonly descriptors: number;
  readonly inFlight: number;
  /** 99th percentile of the event loop's delay since the previous sample. */
  readonly loopLagSeconds: number;
  readonly ready: boolean;
}

interface Watched {
  readonly pid: number;
  readonly adminPort: number;
}

/** Takes a sample every `everyMs` milliseconds until `stop` is aborted, or the process has ended. */
export async function takeSamples(
  watched: Watched,
  everyMs: number,
  stop: AbortSignal,
): Promise<readonly Sample[]> {
  const samples: Sample[] = [];
  const startedMs = performance.now();
  while (!stop.aborted) {
    const sample = await look(watched, startedMs).catch(() => undefined);
    if (sample === undefined) break;
    samples.push(sample);
    await delay(everyMs, undefined, { signal: stop }).catch(() => undefined);
  }
  return samples;
}

async function look(watched: Watched, startedMs: number): Promise<Sample> {
  const state = processState(watched.pid);
  const metrics = await scrape(watched).catch(() => undefined);
  const answer = await ask({ port: watched.adminPort }, "/readyz").catch(() => undefined);
  return {
    seconds: (performance.now() - startedMs) / 1000,
    residentBytes: state.residentBytes,
    heapBytes: metrics?.value("nodejs_heap_size_used_bytes") ?? NaN,
    descriptors: openDescriptors(state),
    inFlight: metrics?.value("sallyport_http_requests_in_flight") ?? NaN,
    loopLagSeconds: metrics?.value("nodejs_eventloop_lag_p99_seconds") ?? NaN,
    ready: metrics !== undefined && answer?.status === 200,
  };
}
