import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { json } from "node:stream/consumers";
import { createGunzip } from "node:zlib";
import { listening } from "./listening.ts";
import { until } from "./until.ts";

/** A received span, with the names of OTLP/JSON. */
export interface CollectedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly name: string;
  /** 2 for a server span, 3 for a client span. */
  readonly kind: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  /** 2 for an error. */
  readonly status: number;
  readonly traceState: string;
  readonly service: unknown;
}

export interface Collector extends AsyncDisposable {
  /** For `OTEL_EXPORTER_OTLP_ENDPOINT`. */
  readonly url: string;
  readonly spans: readonly CollectedSpan[];
  /** The headers of each delivery. */
  readonly deliveries: readonly IncomingMessage["headers"][];
}

interface Attribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

interface Delivery {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly WrittenSpan[] }[];
  }[];
}

interface WrittenSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly attributes: readonly Attribute[];
  readonly status: { readonly code?: number };
  readonly traceState?: string;
}

/** Starts a collector for OTLP/HTTP with JSON. @param answer called instead of accepting the spans. */
export async function startCollector(
  answer?: (response: ServerResponse) => void,
): Promise<Collector> {
  const spans: CollectedSpan[] = [];
  const deliveries: IncomingMessage["headers"][] = [];
  const take = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    deliveries.push(request.headers);
    const zipped = request.headers["content-encoding"] === "gzip";
    const body = (await json(zipped ? request.pipe(createGunzip()) : request)) as Delivery;
    if (request.url === "/v1/traces") spans.push(...spansIn(body));
    response.writeHead(200, { "content-type": "application/json" }).end("{}");
  };
  const server = createServer((request, response) => {
    if (answer === undefined) take(request, response).catch(() => response.destroy());
    else {
      deliveries.push(request.headers);
      answer(response);
    }
  });
  return { ...(await listening(server)), spans, deliveries };
}

function spansIn({ resourceSpans }: Delivery): CollectedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const service = valuesOf(resource.attributes)["service.name"];
    return scopeSpans.flatMap(({ spans }) =>
      spans.map(({ parentSpanId = "", attributes, status, traceState = "", ...rest }) => ({
        ...rest,
        parentSpanId,
        traceState,
        service,
        attributes: valuesOf(attributes),
        status: status.code ?? 0,
      })),
    );
  });
}

function valuesOf(attributes: readonly Attribute[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}

/**
 * Waits until all spans of a trace have arrived. @returns the span of the request and that of its call to the backend.
 *
 * @param count the expected number of spans; more are an error.
 */
export async function spansOf(
  { spans }: Collector,
  traceId: string,
  count: number,
): Promise<readonly [CollectedSpan | undefined, CollectedSpan | undefined]> {
  const ofTrace = (): CollectedSpan[] => spans.filter((span) => span.traceId === traceId);
  await until(() => ofTrace().length >= count);
  if (ofTrace().length > count) throw new Error(`${ofTrace().length} spans instead of ${count}`);
  return [ofTrace().find(({ kind }) => kind === 2), ofTrace().find(({ kind }) => kind === 3)];
}
