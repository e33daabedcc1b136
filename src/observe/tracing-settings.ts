import {
  anyFile,
  compression,
  headerPairs,
  httpUrl,
  milliseconds,
  oneOf,
  resourceAttributes,
  share,
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

/** What is not left to the exporter, which reads the variables that begin with `OTEL_EXPORTER_OTLP_` itself. */
export interface TracingSettings {
  /** Where spans are posted to. */
  readonly url: string;
  readonly sampler: (typeof SAMPLERS)[number];
  /** How many of all traces are sampled, from 0 to 1, where the sampler goes by that. */
  readonly ratio: number;
  /** For how long spans wait for company, in milliseconds. */
  readonly delayMs: number;
  /** How long one delivery may take, in milliseconds. */
  readonly timeoutMs: number;
}

/** A variable with a value that cannot be followed. No value is told: some are secret. */
export interface Unfollowed {
  readonly variable: string;
  readonly wanted: string;
}

const OTLP = "OTEL_EXPORTER_OTLP_";
const OF_TRACES = `${OTLP}TRACES_`;
const OFF = { settings: undefined, unfollowed: [] };

/**
 * Reads OpenTelemetry's variables as its specification says ("Environment Variable Specification"): a blank one is unset, and
 * for a value that cannot be followed the default counts. An address has no default: spans go nowhere that nobody named.
 *
 * @returns no settings when tracing is off.
 */
export function readTracingSettings(env: Environment): {
  readonly settings: TracingSettings | undefined;
  readonly unfollowed: readonly Unfollowed[];
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
    ? variables.read("OTEL_TRACES_SAMPLER_ARG", "a number from 0 to 1", share)
    : undefined;
  const delayMs = variables.read("OTEL_BSP_SCHEDULE_DELAY", "milliseconds above 0", milliseconds);
  const timeoutMs = variables.readEither("TIMEOUT", "milliseconds above 0", milliseconds);
  // JSON is what is sent. Who takes the other takes this on the same port (OTLP specification, "OTLP/HTTP").
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
  const { unfollowed } = variables;
  if (common === undefined) return { settings: undefined, unfollowed };
  return {
    settings: {
      url: own ?? `${common.replace(/\/$/, "")}/v1/traces`,
      sampler: sampler ?? "parentbased_always_on",
      ratio: ratio ?? 1,
      delayMs: delayMs ?? 5_000,
      timeoutMs: timeoutMs ?? 10_000,
    },
    unfollowed,
  };
}

/** Reads variables, and notes those that cannot be followed. */
class Variables {
  readonly #env: Environment;
  readonly unfollowed: Unfollowed[] = [];

  constructor(env: Environment) {
    this.#env = env;
  }

  has(variable: string): boolean {
    return (this.#env[variable] ?? "").trim() !== "";
  }

  /** @param parse gives undefined for what cannot be followed. */
  read<Value>(
    variable: string,
    wanted: string,
    parse: (text: string) => Value | undefined,
  ): Value | undefined {
    if (!this.has(variable)) return undefined;
    const value = parse(this.#env[variable] ?? "");
    if (value === undefined) this.unfollowed.push({ variable, wanted });
    return value;
  }

  /** The variable for traces alone, or else the one for all that is exported. */
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
