/** Parsers for the values of OpenTelemetry's variables. Each returns undefined for an invalid value. */
import { readFileSync } from "node:fs";
import { validateHeaderName, validateHeaderValue } from "../../lib/http/node-http.ts";

/** The longest delay of a Node timer, in milliseconds. */
const MAX_MS = 2 ** 31 - 1;
/** The longest name or value of an attribute that `@opentelemetry/resources` accepts. */
const MAX_ATTRIBUTE = 255;

/** Accepts one of these words, in any case, as the specification requires. */
export function oneOf<Word extends string>(...words: readonly Word[]) {
  return (text: string): Word | undefined => words.find((w) => w === text.trim().toLowerCase());
}

/** Accepts a number from 0 to 1. */
export function fraction(text: string): number | undefined {
  const number = Number(text);
  return number >= 0 && number <= 1 ? number : undefined;
}

/** Accepts a delay above 0, in milliseconds, that a timer supports. */
export function milliseconds(text: string): number | undefined {
  const number = Number(text);
  return number > 0 && number <= MAX_MS ? number : undefined;
}

export function httpUrl(text: string): string | undefined {
  const protocol = URL.parse(text)?.protocol;
  return protocol === "http:" || protocol === "https:" ? text.trim() : undefined;
}

/** Accepts the name of a readable file, relative to the working directory, as the exporter resolves it. */
export function anyFile(name: string): string | undefined {
  try {
    readFileSync(name);
    return name;
  } catch {
    return undefined;
  }
}

/** Accepts `gzip` or `none`, in lower case only, as the exporter requires. */
export function compression(text: string): string | undefined {
  return ["gzip", "none"].find((word) => word === text.trim());
}

/** Accepts header fields as comma-separated `name=value` pairs, percent-encoded. */
export function headerPairs(text: string): string | undefined {
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
export function resourceAttributes(text: string): string | undefined {
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
