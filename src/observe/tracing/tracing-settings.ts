/** Parsers for the values of OpenTelemetry's variables. Each returns undefined for an invalid value. */
import { readFileSync } from "node:fs";
import { validateHeaderName, validateHeaderValue } from "../../lib/http/node-http.ts";
import type { Log } from "../../core/log.ts";
import { LONGEST_TIMER_MS } from "../../lib/clock.ts";
import type { Tracing } from "./opentelemetry.ts";

/** The longest name or value of an attribute that `@opentelemetry/resources` accepts. */
const MAX_ATTRIBUTE = 255;

/** A parser for the value of a variable. Returns undefined for an unsupported value. */
type Parse<Value> = (text: string) => Value | undefined;

/** Accepts one of these words, in any case, as the specification requires. */
function oneOf<Word extends string>(...words: readonly Word[]) {
  return (text: string): Word | undefined => words.find((w) => w === text.trim().toLowerCase());
}

/** Accepts a number from 0 to 1. */
function fraction(text: string): number | undefined {
  const number = Number(text);
  return number >= 0 && number <= 1 ? number : undefined;
}

/** Accepts a delay above 0, in milliseconds, that a timer supports. */
function milliseconds(text: string): number | undefined {
  const number = Number(text);
  return number > 0 && number <= LONGEST_TIMER_MS ? number : undefined;
}

function httpUrl(text: string): string | undefined {
  const protocol = URL.parse(text)?.protocol;
  return protocol === "http:" || protocol === "https:" ? text.trim() : undefined;
}

/** Accepts the name of a readable file, relative to the working directory, as the exporter resolves it. */
function anyFile(name: string): string | undefined {
  try {
    readFileSync(name);
    return name;
  } catch {
    return undefined;
  }
}

/** Accepts `gzip` or `none`, in lower case only, as the exporter requires. */
function compression(text: string): string | undefined {
  return ["gzip", "none"].find((word) => word === text.trim());
}

/** Accepts header fields as comma-separated `name=value` pairs, percent-encoded. */
function headerPairs(text: string): string | undefined {
  return everyPair(text, (name, value) => {
    validateHeaderName(name);
    validateHeaderValue(name, value);
    return value !== "";
  });
}

/**
 * Accepts attributes as comma-separated `name=value` pairs, percent-encoded. OpenTelemetry accepts all of them or
 * none.
 */
function resourceAttributes(text: string): string | undefined {
  return everyPair(
    text,
    (name, value, written) =>
      name !== "" && !written.includes("=") && Math.max(name.length, value.length) <= MAX_ATTRIBUTE,
  );
}

/** @param fits receives a name, its value, and the value as written. It may throw to reject them. */
function everyPair(
  text: string,
  fits: (name: string, value: string, written: string) => boolean,
): string | undefined {
  const pairs = text.split(",").filter((pair) => pair.trim() !== "");
  try {
    const all = pairs.every((pair) => {
      const [, name = "", value = ""] = /^([^=]*)=(.*)$/s.exec(pair) ?? [];
      return fits(decodeURIComponent(name.trim()), decodeURIComponent(value.trim()), value);
    });
    return all ? text : undefined;
  } catch {
    return undefined;
  }
}

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
interface UnsupportedVariable {
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
  const unsupported: UnsupportedVariable[] = [];
  const has = (variable: string): boolean => (env[variable] ?? "").trim() !== "";
  const read = <Value>(
    variable: string,
    wanted: string,
    parse: Parse<Value>,
  ): Value | undefined => {
    if (!has(variable)) return undefined;
    const value = parse(env[variable] ?? "");
    if (value === undefined) unsupported.push({ variable, wanted });
    return value;
  };
  /** Reads the variable for traces; if that is unset or unsupported, reads the one for all signals. */
  const readEither = <Value>(name: string, wanted: string, parse: Parse<Value>) =>
    read(`${OF_TRACES}${name}`, wanted, parse) ?? read(`${OTLP}${name}`, wanted, parse);

  const endpoint = `${OTLP}ENDPOINT`;
  const ownEndpoint = `${OF_TRACES}ENDPOINT`;
  if (!has(endpoint) && !has(ownEndpoint)) return OFF;
  const disabled = read("OTEL_SDK_DISABLED", "true or false", oneOf("true", "false"));
  const exporter = read("OTEL_TRACES_EXPORTER", "otlp or none", oneOf("otlp", "none"));
  if (disabled === "true" || exporter === "none") return OFF;

  const sampler = read("OTEL_TRACES_SAMPLER", SAMPLERS.join(", "), oneOf(...SAMPLERS));
  const byRatio = sampler?.endsWith("traceidratio") === true;
  const ratio = byRatio
    ? read("OTEL_TRACES_SAMPLER_ARG", "a number from 0 to 1", fraction)
    : undefined;
  const delayMs = read("OTEL_BSP_SCHEDULE_DELAY", "milliseconds above 0", milliseconds);
  const timeoutMs = readEither("TIMEOUT", "milliseconds above 0", milliseconds);
  // We send JSON. Receivers of protobuf accept it on the same port (OTLP specification, "OTLP/HTTP").
  readEither("PROTOCOL", "http/json", oneOf("http/json", "http/protobuf"));
  readEither("COMPRESSION", "gzip or none", compression);
  for (const file of ["CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY"]) {
    readEither(file, "a file that can be read", anyFile);
  }
  for (const headers of [`${OTLP}HEADERS`, `${OF_TRACES}HEADERS`]) {
    read(headers, "name=value pairs with commas between", headerPairs);
  }
  read(
    "OTEL_RESOURCE_ATTRIBUTES",
    "name=value pairs with commas between, percent-encoded",
    resourceAttributes,
  );
  const own = read(ownEndpoint, "an http or https URL", httpUrl);
  const common = own ?? read(endpoint, "an http or https URL", httpUrl);
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

export interface TracingOptions {
  /** OpenTelemetry's own variables define where spans go. */
  readonly env: Environment;
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
