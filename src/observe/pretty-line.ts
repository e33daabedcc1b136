import { styleText } from "node:util";
import { quoted } from "./escaping.ts";

const LEVEL_STYLES = { debug: "dim", info: "green", warn: "yellow", error: "red" } as const;

/** Shown in the head of an access line, or of no interest on a terminal. */
const IN_THE_HEAD = new Set(["time", "level", "msg"]);
const IN_THE_REQUEST = new Set([...IN_THE_HEAD, "method", "path", "status", "duration_ms"]);

/**
 * A JSON line of ours as one line for a person: `12:00:01.123 INFO  listening  address=0.0.0.0:8443`, and for requests
 * `12:00:01.123 INFO  GET /orders 200 3.1ms  route=orders …`. What is not printable is escaped; what is not a JSON
 * object comes back as it is.
 */
export function prettyLine(json: string, color: boolean): string {
  const fields = parsed(json);
  if (fields === undefined) return json;
  const isRequest = fields["msg"] === "request" && fields["method"] !== undefined;
  const time = shown(fields["time"]).slice(11, 23);
  const level = shown(fields["level"]);
  const message = isRequest
    ? `${shown(fields["method"])} ${shown(fields["path"])} ${shown(fields["status"])} ${Number(fields["duration_ms"]).toFixed(1)}ms`
    : readable(fields["msg"]);
  const hidden = isRequest ? IN_THE_REQUEST : IN_THE_HEAD;
  const rest = Object.entries(fields)
    .filter(([name]) => !hidden.has(name))
    .map(([name, value]) => `${paint("dim", `${shown(name)}=`, color)}${shown(value)}`);
  const label = paint(levelStyle(level), level.toUpperCase().padEnd(5), color);
  return [`${paint("dim", time, color)} ${label} ${message}`, ...rest].join("  ").trimEnd();
}

type Style = (typeof LEVEL_STYLES)[keyof typeof LEVEL_STYLES];

function levelStyle(level: string): Style {
  if (level === "debug" || level === "warn" || level === "error") return LEVEL_STYLES[level];
  return LEVEL_STYLES.info;
}

function paint(style: Style, text: string, color: boolean): string {
  return color ? styleText(style, text, { validateStream: false }) : text;
}

function parsed(json: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === "object" && value !== null ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

/** A value as one word: quoted when it holds blanks or anything that is not printable ASCII. */
function shown(value: unknown): string {
  if (typeof value !== "string") return JSON.stringify(value) ?? "";
  return /^[!#-[\]-~]+$/.test(value) ? value : quoted(value);
}

/** A message as text: its blanks stay, what is not printable is escaped. */
function readable(value: unknown): string {
  return typeof value === "string" ? quoted(value).slice(1, -1).replaceAll('\\"', '"') : "";
}
