import { setTimeout as after } from "node:timers/promises";
import { setGlobalErrorHandler } from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from "@opentelemetry/resources";
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import type { Log } from "../core/log.ts";
import type { Tracing } from "../core/tracing.ts";
import { RequestSpans } from "./request-spans.ts";
import type { TracingOptions } from "./tracing.ts";
import type { TracingSettings } from "./tracing-settings.ts";

/** How long the end of Sallyport waits for the collector, in milliseconds. */
const LAST_SPANS_MS = 2_000;
/** Finished spans that wait for the collector; those beyond are dropped. */
const WAITING_SPANS = 4_096;
/** How often it is told that spans could not be sent, in milliseconds. */
const TELL_EVERY_MS = 60_000;

/** Sends spans as OpenTelemetry's environment variables say. A collector that fails costs spans and nothing else. */
export function startTracing(settings: TracingSettings, options: TracingOptions): Tracing {
  const { url, timeoutMs, delayMs } = settings;
  const { version, log } = options;
  const tell = complaints(log);
  setGlobalErrorHandler(tell);
  const provider = new TracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ "service.name": "sallyport", "service.version": version }))
      .merge(detectResources({ detectors: [envDetector] })),
    sampler: samplerOf(settings),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: new OTLPTraceExporter({ url, timeoutMillis: timeoutMs }),
        maxQueueSize: WAITING_SPANS,
        scheduledDelayMillis: delayMs,
        exportTimeoutMillis: 10_000,
      }),
    ],
  });
  const spans = new RequestSpans(provider.getTracer("sallyport", version));
  log.info("tracing");
  return {
    began: (id, rawHeaders) => spans.begin(id, rawHeaders),
    dispatched: (permit) => spans.dispatch(permit),
    ended: (outcome) => spans.end(outcome),
    async close() {
      const limit = new AbortController();
      const sent = provider.shutdown().catch(tell);
      const late = after(LAST_SPANS_MS, undefined, { signal: limit.signal }).catch(() => undefined);
      await Promise.race([sent, late]);
      limit.abort();
    },
  };
}

/** What a client has decided counts where the name says so. */
function samplerOf({ sampler, ratio }: TracingSettings): Sampler {
  const root = rootSampler(sampler.replace("parentbased_", ""), ratio);
  return sampler.startsWith("parentbased_") ? new ParentBasedSampler({ root }) : root;
}

function rootSampler(name: string, ratio: number): Sampler {
  if (name === "traceidratio") return new TraceIdRatioBasedSampler(ratio);
  return name === "always_off" ? new AlwaysOffSampler() : new AlwaysOnSampler();
}

/** Tells now and then that spans are lost. Of the error its message alone: its other fields hold what the collector answered. */
function complaints(log: Log): (error: unknown) => void {
  let quietUntil = Number.NEGATIVE_INFINITY;
  return (error) => {
    if (performance.now() < quietUntil) return;
    quietUntil = performance.now() + TELL_EVERY_MS;
    const reason = error instanceof Error ? error.message : String(error);
    log.warn("spans were not sent", { reason });
  };
}
