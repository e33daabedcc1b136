import type { Log } from "../../core/log.ts";
import type { Tracing } from "./opentelemetry.ts";
import { readTracingSettings } from "./tracing-settings.ts";

export interface TracingOptions {
  /** The environment. OpenTelemetry's own variables define where spans go. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Sallyport's own version. */
  readonly version: string;
  readonly log: Log;
}

/**
 * Starts tracing if the environment names an endpoint (`OTEL_EXPORTER_OTLP_ENDPOINT` or
 * `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`) and does not disable it. OpenTelemetry's packages are loaded only then.
 */
export async function openTracing(options: TracingOptions): Promise<Tracing | undefined> {
  const { settings } = readTracingSettings(options.env);
  if (settings === undefined) return undefined;
  const { startTracing } = await import("./opentelemetry.ts");
  return startTracing(settings, options);
}

/** Warns about variables with unsupported values. Call it once, however many threads trace. */
export function warnUnsupported({ env, log }: Pick<TracingOptions, "env" | "log">): void {
  const { settings, unsupported } = readTracingSettings(env);
  const tracing = settings === undefined ? "off" : "on";
  for (const { variable, wanted } of unsupported) {
    log.warn("an OpenTelemetry variable has an unsupported value", { variable, wanted, tracing });
  }
}
