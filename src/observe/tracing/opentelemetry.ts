import { setGlobalErrorHandler, W3CTraceContextPropagator } from "@opentelemetry/core";
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
import {
  type Attributes,
  type Context,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
  type Tracer,
} from "@opentelemetry/api";
import type { Log } from "../../core/log.ts";
import { headerValues, TRACE_HEADERS } from "../../lib/http/header-values.ts";
import type { TracingOptions, TracingSettings } from "./tracing-settings.ts";
import type { Outcome } from "../../core/request/outcome.ts";
import type { Permit } from "../../core/request/permit.ts";
import { maskTokens } from "../log/redaction.ts";
import { withTimeout } from "../../lib/async/with-timeout.ts";

/** The spans of one request: the server span, and the client span of the call to the backend. */
interface Spans {
  readonly context: Context;
  readonly server: Span;
  client: Span | undefined;
}

const propagator = new W3CTraceContextPropagator();

/** How long shutdown waits for the collector, in milliseconds. */
const LAST_SPANS_MS = 500;

/**
 * Distributed tracing of requests (W3C Trace Context), present only if tracing is on. Without it, a client's
 * `traceparent` is forwarded unchanged. Requests are identified by their `id`. No method blocks or throws. Attributes follow the
 * semantic conventions for HTTP.
 */
export class Tracing {
  readonly #provider: TracerProvider;
  readonly #tracer: Tracer;
  readonly #warn: (error: unknown) => void;
  /** The spans of requests in progress, by request id. */
  readonly #open = new Map<number, Spans>();

  /** @param warn called with the error if spans are lost. */
  constructor(provider: TracerProvider, version: string, warn: (error: unknown) => void) {
    this.#provider = provider;
    this.#tracer = provider.getTracer("sallyport", version);
    this.#warn = warn;
  }

  /** The head of a request has arrived. @param rawHeaders names and values, alternating. */
  began(id: number, rawHeaders: readonly string[]): void {
    const parent = propagator.extract(ROOT_CONTEXT, rawHeaders, { get: valueOf, keys: () => [] });
    const server = this.#tracer.startSpan("HTTP", { kind: SpanKind.SERVER }, parent);
    this.#open.set(id, { context: trace.setSpan(parent, server), server, client: undefined });
  }

  /**
   * The request is sent to a backend, for the first time or again: starts the client span of the attempt.
   *
   * @returns its trace headers, names and values alternating.
   */
  dispatched({ request, route }: Permit): string[] {
    const spans = this.#open.get(request.id);
    if (spans === undefined) return [];
    // An earlier attempt failed, and the request is sent again.
    spans.client
      ?.setAttribute("error.type", "reset")
      .setStatus({ code: SpanStatusCode.ERROR })
      .end();
    const attributes = {
      "http.request.method": request.method,
      "sallyport.upstream": route.upstream,
    };
    const options = { kind: SpanKind.CLIENT, attributes };
    spans.client = this.#tracer.startSpan(request.method, options, spans.context);
    const fields: string[] = [];
    propagator.inject(trace.setSpan(spans.context, spans.client), fields, {
      set: (carrier: string[], name, value) => void carrier.push(name, value),
    });
    return fields;
  }

  /** Ends the trace of a request. @returns its id, 32 hexadecimal digits; undefined for a request without a trace. */
  ended(outcome: Outcome): string | undefined {
    const spans = this.#open.get(outcome.id);
    if (spans === undefined) return undefined;
    this.#open.delete(outcome.id);
    const { server, client } = spans;
    client?.setAttributes(clientAttributes(outcome));
    if (client !== undefined && isBackendsFault(outcome)) {
      client.setStatus({ code: SpanStatusCode.ERROR });
    }
    client?.end();
    server
      .updateName(`${outcome.method} ${outcome.route}`)
      .setAttributes(serverAttributes(outcome));
    if (outcome.status >= 500) server.setStatus({ code: SpanStatusCode.ERROR });
    server.end();
    return server.spanContext().traceId;
  }

  /** Flushes finished spans, for some seconds at most. Never rejects. */
  async close(): Promise<void> {
    const sent = this.#provider.shutdown().catch(this.#warn);
    await withTimeout(sent, LAST_SPANS_MS, undefined);
  }
}

/**
 * Returns the attributes of the server span. They omit the query and the user: spans go to a different system than
 * the log.
 */
function serverAttributes(outcome: Outcome): Attributes {
  const { reason, auth } = outcome;
  return {
    "http.request.method": outcome.method,
    "http.response.status_code": outcome.status,
    "url.path": maskTokens(outcome.path),
    "server.address": outcome.host,
    "client.address": outcome.client,
    "sallyport.route": outcome.route,
    "sallyport.request_id": outcome.requestId,
    ...(auth === undefined ? {} : { "sallyport.auth": auth }),
    ...(reason === undefined || reason === "ok" ? {} : { "sallyport.reason": reason }),
  };
}

function clientAttributes({ source, status, target, reason }: Outcome): Attributes {
  return {
    ...(target === undefined ? {} : { "sallyport.target": target }),
    ...(source === "upstream"
      ? { "http.response.status_code": status }
      : { "error.type": reason ?? "unknown" }),
  };
}

/** Whether there was no response, or an error. The semantic conventions count 4xx as errors of a client span, too. */
function isBackendsFault({ source, status }: Outcome): boolean {
  return source === "self" || status >= 400;
}

/**
 * Returns the value of a header. Ignores traceparent if there are two: it is unclear which one counts. Joins several
 * tracestates (W3C Trace Context §3.3).
 */
function valueOf(rawHeaders: readonly string[], wanted: string): string | undefined {
  const values = headerValues(rawHeaders, wanted);
  if (wanted === TRACE_HEADERS[0] && values.length > 1) return undefined;
  return values.length === 0 ? undefined : values.join(",");
}

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
  log.info("tracing");
  return new Tracing(provider, version, warn);
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
