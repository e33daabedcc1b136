/** The fields of an access line in Sallyport's log that the accounts use. */
export interface AccessLine {
  readonly id: number;
  readonly requestId: string;
  readonly method: string;
  readonly route: string;
  readonly status: number;
  readonly source: string;
  readonly auth: string | undefined;
  readonly target: string | undefined;
  readonly reason: string | undefined;
}

/** Any line of the log. */
export type LogLine = Readonly<Record<string, unknown>>;

/** Parses a log line; undefined if it is not one JSON object. */
export function parseLogLine(text: string): LogLine | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? { ...value }
      : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the access line; undefined if the line is not about a request. */
export function accessLineOf(line: LogLine): AccessLine | undefined {
  if (line["msg"] !== "request") return undefined;
  return {
    id: Number(line["id"]),
    requestId: wordOf(line["request_id"]) ?? "",
    method: wordOf(line["method"]) ?? "",
    route: wordOf(line["route"]) ?? "",
    status: Number(line["status"]),
    source: wordOf(line["source"]) ?? "",
    auth: wordOf(line["auth"]),
    target: wordOf(line["target"]),
    reason: wordOf(line["reason"]),
  };
}

function wordOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
