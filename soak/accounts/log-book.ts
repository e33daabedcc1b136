import { type AccessLine, accessLineOf, type LogLine, parseLogLine } from "./access-line.ts";
import { Tally } from "./tally.ts";
import { Trouble } from "./trouble.ts";

/** The methods that have their own label in the metrics. */
const METHODS = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

/** Reads Sallyport's log while it is written, and counts its lines. */
export class LogBook {
  readonly #onAccess: (line: AccessLine) => void;
  readonly #expected = new Set<string>();
  /** By `route method status`, as `http_requests_total` counts. */
  readonly requests = new Tally();
  /** By the `result` of `auth_decisions_total`. */
  readonly decisions = new Tally();
  /** The number of lines about answers of a backend. */
  fromUpstream = 0;
  /** All other lines, by message. */
  readonly messages = new Tally();
  /** Unexpected lines of the level error or fatal, lost lines, and lines that are not JSON. */
  readonly errors = new Trouble();

  constructor(onAccess: (line: AccessLine) => void) {
    this.#onAccess = onAccess;
  }

  /** Expects a message of the level error, which a fault will cause. */
  expectError(message: string): void {
    this.#expected.add(message);
  }

  /** Reads one line of standard output. */
  read(text: string): void {
    const line = parseLogLine(text);
    if (line === undefined) {
      this.errors.add(`not a line of JSON: ${text}`);
      return;
    }
    const access = accessLineOf(line);
    if (access === undefined) this.#other(line, text);
    else this.#access(access);
  }

  /** Reads one line of standard error, which should always be empty. */
  readError(text: string): void {
    this.errors.add(`on standard error: ${text}`);
  }

  #access(line: AccessLine): void {
    const method = METHODS.has(line.method) ? line.method : "other";
    this.requests.add(`${line.route} ${method} ${line.status}`);
    if (line.auth !== undefined) this.decisions.add(line.auth);
    if (line.source === "upstream") this.fromUpstream += 1;
    this.#onAccess(line);
  }

  #other(line: LogLine, text: string): void {
    const message = String(line["msg"]);
    this.messages.add(message);
    const loud = line["level"] === "error" || line["level"] === "fatal";
    if (loud && !this.#expected.has(message)) this.errors.add(text);
    if (line["dropped"] !== undefined) this.errors.add(text);
  }
}
