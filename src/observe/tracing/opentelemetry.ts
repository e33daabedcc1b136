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
import type { Log } from "../../core/log.ts";
import type { Tracing } from "../../core/tracing.ts";
import { RequestSpans } from "./request-spans.ts";
import type { TracingOptions } from "./open-tracing.ts";
import type { TracingSettings } from "./tracing-settings.ts";

/** How long shutdown waits for the collector, in milliseconds. */
const LAST_SPANS_MS = 500;
/** The maximum number of finished spans that wait for the collector; further ones are dropped. */
const WAITING_SPANS = 4_096;
/** Minimum time between two warnings about lost spans, in milliseconds. */
const WARN_EVERY_MS = 60_000;

/**
 * Starts sending spans according to OpenTelemetry's environment variables. If the collector fails, only spans are
 * lost.
 */
export function startTracing(settings: TracingSettings, options: TracingOptions): Tracing {
  const { url, timeoutMs, delayMs } = settings;
  const { version, log } = options;
  const warn = throttledWarning(log);
  setGlobalErrorHandler(warn);
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
      const sent = provider.shutdown().catch(warn);
      const late = after(LAST_SPANS_MS, undefined, { signal: limit.signal }).catch(() => undefined);
      await Promise.race([sent, late]);
      limit.abort();
    },
  };
}

/** Creates the sampler. With a name that begins with `parentbased_`, the client's decision takes precedence. */
function samplerOf({ sampler, ratio }: TracingSettings): Sampler {
  const root = rootSampler(sampler.replace("parentbased_", ""), ratio);
  return sampler.startsWith("parentbased_") ? new ParentBasedSampler({ root }) : root;
}

function rootSampler(name: string, ratio: number): Sampler {
  if (name === "traceidratio") return new TraceIdRatioBasedSampler(ratio);
  return name === "always_off" ? new AlwaysOffSampler() : new AlwaysOnSampler();
}

/**
 * Returns a function that warns, at most once a minute, that spans are lost. Logs only the message of the error,
 * because its other fields contain the collector's response.
 */
function throttledWarning(log: Log): (error: unknown) => void {
  let quietUntil = Number.NEGATIVE_INFINITY;
  return (error) => {
    if (performance.now() < quietUntil) return;
    quietUntil = performance.now() + WARN_EVERY_MS;
    const reason = error instanceof Error ? error.message : String(error);
    log.warn("spans could not be sent", { reason });
  };
}
