import {
  anyFile,
  compression,
  headerPairs,
  httpUrl,
  milliseconds,
  oneOf,
  resourceAttributes,
  fraction,
} from "./tracing-values.ts";

type Environment = Readonly<Record<string, string | undefined>>;

const SAMPLERS = [
  "always_on",
  "always_off",
  "traceidratio",
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio",
] as const;

/**
 * The settings that we apply ourselves. The exporter reads the other variables that begin with `OTEL_EXPORTER_OTLP_`.
 */
export interface TracingSettings {
  /** The URL that spans are posted to. */
  readonly url: string;
  readonly sampler: (typeof SAMPLERS)[number];
  /** The fraction of traces to sample, from 0 to 1, for the samplers that use it. */
  readonly ratio: number;
  /** How long spans wait to be sent in a batch, in milliseconds. */
  readonly delayMs: number;
  /** The timeout of one export, in milliseconds. */
  readonly timeoutMs: number;
}

/** A variable with an unsupported value. The value is omitted, since some are secret. */
export interface UnsupportedVariable {
  readonly variable: string;
  readonly wanted: string;
}

const OTLP = "OTEL_EXPORTER_OTLP_";
const OF_TRACES = `${OTLP}TRACES_`;
const OFF = { settings: undefined, unsupported: [] };

/**
 * Reads OpenTelemetry's variables according to its specification ("Environment Variable Specification"): a blank
 * variable is unset, and an unsupported value means the default. The endpoint has no default here, so that spans go
 * nowhere unless an operator configures it.
 *
 * @returns no settings if tracing is off.
 */
export function readTracingSettings(env: Environment): {
  readonly settings: TracingSettings | undefined;
  readonly unsupported: readonly UnsupportedVariable[];
} {
  const variables = new Variables(env);
  const endpoint = `${OTLP}ENDPOINT`;
  const ownEndpoint = `${OF_TRACES}ENDPOINT`;
  if (!variables.has(endpoint) && !variables.has(ownEndpoint)) return OFF;
  const disabled = variables.read("OTEL_SDK_DISABLED", "true or false", oneOf("true", "false"));
  const exporter = variables.read("OTEL_TRACES_EXPORTER", "otlp or none", oneOf("otlp", "none"));
  if (disabled === "true" || exporter === "none") return OFF;

  const sampler = variables.read("OTEL_TRACES_SAMPLER", SAMPLERS.join(", "), oneOf(...SAMPLERS));
  const byRatio = sampler?.endsWith("traceidratio") === true;
  const ratio = byRatio
    ? variables.read("OTEL_TRACES_SAMPLER_ARG", "a number from 0 to 1", fraction)
    : undefined;
  const delayMs = variables.read("OTEL_BSP_SCHEDULE_DELAY", "milliseconds above 0", milliseconds);
  const timeoutMs = variables.readEither("TIMEOUT", "milliseconds above 0", milliseconds);
  // We send JSON. Receivers of protobuf accept it on the same port (OTLP specification, "OTLP/HTTP").
  variables.readEither("PROTOCOL", "http/json", oneOf("http/json", "http/protobuf"));
  variables.readEither("COMPRESSION", "gzip or none", compression);
  for (const file of ["CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY"]) {
    variables.readEither(file, "a file that can be read", anyFile);
  }
  for (const headers of [`${OTLP}HEADERS`, `${OF_TRACES}HEADERS`]) {
    variables.read(headers, "name=value pairs with commas between", headerPairs);
  }
  variables.read(
    "OTEL_RESOURCE_ATTRIBUTES",
    "name=value pairs with commas between, percent-encoded",
    resourceAttributes,
  );
  const own = variables.read(ownEndpoint, "an http or https URL", httpUrl);
  const common = own ?? variables.read(endpoint, "an http or https URL", httpUrl);
  const { unsupported } = variables;
  if (common === undefined) return { settings: undefined, unsupported };
  return {
    settings: {
      url: own ?? `${common.replace(/\/$/, "")}/v1/traces`,
      sampler: sampler ?? "parentbased_always_on",
      ratio: ratio ?? 1,
      delayMs: delayMs ?? 5_000,
      timeoutMs: timeoutMs ?? 10_000,
    },
    unsupported,
  };
}

/** Reads variables and collects those with unsupported values. */
class Variables {
  readonly #env: Environment;
  readonly unsupported: UnsupportedVariable[] = [];

  constructor(env: Environment) {
    this.#env = env;
  }

  has(variable: string): boolean {
    return (this.#env[variable] ?? "").trim() !== "";
  }

  /** @param parse returns undefined for an unsupported value. */
  read<Value>(
    variable: string,
    wanted: string,
    parse: (text: string) => Value | undefined,
  ): Value | undefined {
    if (!this.has(variable)) return undefined;
    const value = parse(this.#env[variable] ?? "");
    if (value === undefined) this.unsupported.push({ variable, wanted });
    return value;
  }

  /** Reads the variable for traces; if that is unset or unsupported, reads the one for all signals. */
  readEither<Value>(
    name: string,
    wanted: string,
    parse: (text: string) => Value | undefined,
  ): Value | undefined {
    return (
      this.read(`${OF_TRACES}${name}`, wanted, parse) ?? this.read(`${OTLP}${name}`, wanted, parse)
    );
  }
}
