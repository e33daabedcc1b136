import type { Log } from "../core/log.ts";
import type { Tracing } from "../core/tracing.ts";

export interface TracingOptions {
  /** The environment: OpenTelemetry's own variables say where spans go. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Sallyport's own version. */
  readonly version: string;
  readonly log: Log;
}

/**
 * Tracing, where the environment names a place for spans (`OTEL_EXPORTER_OTLP_ENDPOINT`, or
 * `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`) and does not switch them off. OpenTelemetry's packages are loaded only then.
 */
export async function openTracing(options: TracingOptions): Promise<Tracing | undefined> {
  if (!isWanted(options.env)) return undefined;
  const { startTracing } = await import("./opentelemetry.ts");
  return startTracing(options);
}

function isWanted(env: TracingOptions["env"]): boolean {
  const endpoint = env["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] || env["OTEL_EXPORTER_OTLP_ENDPOINT"];
  const off = env["OTEL_SDK_DISABLED"]?.toLowerCase() === "true";
  return Boolean(endpoint) && !off && env["OTEL_TRACES_EXPORTER"] !== "none";
}
