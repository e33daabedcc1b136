import { styleText } from "node:util";
import { ACCESS_FIELDS } from "./access-log.ts";
import { quoted } from "./redaction.ts";

const LEVEL_STYLES = { debug: "dim", info: "green", warn: "yellow", error: "red" } as const;

/** Fields that appear at the beginning of every line. */
const IN_THE_HEAD = new Set(["time", "level", "msg"]);

/**
 * The further fields of a request, as many as fit, the most important first. `log.fields` come between the two lists.
 */
const FIRST = ["id", "reason", "subject", "route"];
const LAST = ["auth", "upstream", "client", "host"];
const OWN: ReadonlySet<string> = new Set(ACCESS_FIELDS);

/** The maximum width of the line of a request, in columns. */
const WIDTH = 120;

/** The maximum width of the method and of the path, in columns; longer ones are truncated. */
const METHOD_WIDTH = 16;
const PATH_WIDTH = 48;

/**
 * Renders a JSON line for people: `12:00:01.123 INFO  listening  address=0.0.0.0:8443`. Renders a request in at most
 * 120 columns: `12:00:01.123 INFO  200 GET /orders 3.1ms  id=… route=orders …`. Escapes unprintable characters.
 * Returns anything but a JSON object unchanged.
 */
export function prettyLine(json: string, color: boolean): string {
  const fields = parsed(json);
  if (fields === undefined) return json;
  const time = shown(fields["time"]).slice(11, 23);
  const level = shown(fields["level"]);
  const label = paint(levelStyle(level), level.toUpperCase().padEnd(5), color);
  const head = `${paint("dim", time, color)} ${label} `;
  const isRequest = fields["msg"] === "request" && fields["method"] !== undefined;
  return isRequest ? head + requestIn(fields, color) : head + messageIn(fields, color);
}

function messageIn(fields: Fields, color: boolean): string {
  const rest = Object.entries(fields)
    .filter(([name]) => !IN_THE_HEAD.has(name))
    .map(([name, value]) => field(name, value, color));
  return [readable(fields["msg"]), ...rest].join("  ").trimEnd();
}

function requestIn(fields: Fields, color: boolean): string {
  const status = Number(fields["status"]);
  const method = shortened(shown(fields["method"]), METHOD_WIDTH);
  const path = shortened(shown(fields["path"]), PATH_WIDTH);
  const request = `${method} ${path} ${Number(fields["duration_ms"]).toFixed(1)}ms`;
  const parts = [`${paint(statusStyle(status), String(status), color)} ${request}`];
  // `12:00:01.123 INFO  200 ` is 23 columns wide.
  let left = WIDTH - 23 - request.length;
  const additional = Object.keys(fields).filter((name) => !OWN.has(name));
  for (const name of [...FIRST, ...additional, ...LAST]) {
    const width = 3 + name.length + shown(fields[name]).length;
    if (fields[name] === undefined || width > left) continue;
    left -= width;
    parts.push(field(name, fields[name], color));
  }
  return parts.join("  ");
}

function shortened(text: string, width: number): string {
  return text.length > width ? `${text.slice(0, width - 3)}...` : text;
}

function field(name: string, value: unknown, color: boolean): string {
  return `${paint("dim", `${shown(name)}=`, color)}${shown(value)}`;
}

function statusStyle(status: number): Style {
  if (status >= 500) return "red";
  if (status >= 400) return "yellow";
  return status >= 300 ? "cyan" : "green";
}

type Fields = Readonly<Record<string, unknown>>;

type Style = (typeof LEVEL_STYLES)[keyof typeof LEVEL_STYLES] | "cyan";

function levelStyle(level: string): Style {
  if (level === "debug" || level === "warn" || level === "error") return LEVEL_STYLES[level];
  return LEVEL_STYLES.info;
}

function paint(style: Style, text: string, color: boolean): string {
  return color ? styleText(style, text, { validateStream: false }) : text;
}

function parsed(json: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === "object" && value !== null ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

/** Renders a value as one word. Quotes a text that contains spaces or anything but printable ASCII. */
function shown(value: unknown): string {
  if (typeof value !== "string") return JSON.stringify(value) ?? "";
  return /^[!#-[\]-~]+$/.test(value) ? value : quoted(value);
}

/** Renders a message: keeps spaces, escapes unprintable characters. */
function readable(value: unknown): string {
  return typeof value === "string" ? quoted(value).slice(1, -1).replaceAll('\\"', '"') : "";
}
