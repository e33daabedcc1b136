/** The kinds of values that OpenTelemetry's variables have. Each gives undefined for what is none of its kind. */
import { readFileSync } from "node:fs";
import { validateHeaderName, validateHeaderValue } from "../lib/node-http.ts";

/** The most that a timer of Node's takes. */
const MAX_MS = 2 ** 31 - 1;
/** The longest name or value of an attribute that `@opentelemetry/resources` takes. */
const MAX_ATTRIBUTE = 255;

/** One of these words, in lower or upper case, as the specification has it. */
export function oneOf<Word extends string>(...words: readonly Word[]) {
  return (text: string): Word | undefined => words.find((w) => w === text.trim().toLowerCase());
}

/** A number from 0 to 1. */
export function share(text: string): number | undefined {
  const number = Number(text);
  return number >= 0 && number <= 1 ? number : undefined;
}

/** A time above 0 that a timer can wait for. */
export function milliseconds(text: string): number | undefined {
  const number = Number(text);
  return number > 0 && number <= MAX_MS ? number : undefined;
}

export function httpUrl(text: string): string | undefined {
  const protocol = URL.parse(text)?.protocol;
  return protocol === "http:" || protocol === "https:" ? text.trim() : undefined;
}

/** The name of a file that can be read; relative to the working directory, as the exporter takes it. */
export function anyFile(name: string): string | undefined {
  try {
    readFileSync(name);
    return name;
  } catch {
    return undefined;
  }
}

/** The exporter takes it in lower case alone. */
export function compression(text: string): string | undefined {
  return ["gzip", "none"].find((word) => word === text.trim());
}

/** Header fields, as `name=value` with commas between, percent-encoded. */
export function headerPairs(text: string): string | undefined {
  return everyPair(text, (name, value) => {
    validateHeaderName(name);
    validateHeaderValue(name, value);
    return value !== "";
  });
}

/** Attributes, as `name=value` with commas between, percent-encoded. OpenTelemetry takes all of them or none. */
export function resourceAttributes(text: string): string | undefined {
  return everyPair(
    text,
    (name, value, written) =>
      name !== "" && !written.includes("=") && Math.max(name.length, value.length) <= MAX_ATTRIBUTE,
  );
}

/** @param fits is told a name, its value, and the value as it is written; it may throw for what does not fit. */
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
