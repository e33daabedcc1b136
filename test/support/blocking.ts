/**
 * Loaded into Sallyport's process, this reintroduces three faults: a 103 whose many link parameters end in a syntax error
 * blocks the event loop for exponential time, a request with many `Connection` fields takes long, and blanks inside a path
 * with encoded delimiters take quadratic time, for each of its readings.
 */
import { Server, ServerResponse } from "node:http";
import { pathReadings } from "../../src/lib/http/path/canonical-path.ts";

const BUSY_MS = 100;
const MANY = 60;

const { writeInformation } = ServerResponse.prototype;
Object.defineProperty(ServerResponse.prototype, "writeInformation", {
  value(this: ServerResponse, status: number, fields: readonly string[]) {
    const at = fields.indexOf("link");
    if (at !== -1) /^<[^>]*>(?:\s*;\s*[^;"\s]+(?:=[^;"\s]*)?)*$/.test(fields[at + 1] ?? "");
    Reflect.apply(writeInformation, this, [status, fields]);
  },
});

const { emit } = Server.prototype;
Object.defineProperty(Server.prototype, "emit", {
  value(this: Server, event: string, ...rest: unknown[]) {
    const [request] = rest;
    if (event === "request" && manyConnections(request)) spend(BUSY_MS / 5);
    if (event === "request") cutBlanks(request);
    return Reflect.apply(emit, this, [event, ...rest]);
  },
});

/** A fast machine takes less than a stall for it once. */
const TIMES = 4;

/** As in revision 69d672a, several times over. */
function cutBlanks(request: unknown): void {
  if (typeof request !== "object" || request === null || !("url" in request)) return;
  const [path = ""] = String(request.url).split("?");
  for (const reading of pathReadings(path)) {
    for (let i = 0; i < TIMES; i += 1) reading.replace(/ +$/, "");
  }
}

function manyConnections(request: unknown): boolean {
  if (typeof request !== "object" || request === null || !("rawHeaders" in request)) return false;
  const { rawHeaders } = request;
  if (!Array.isArray(rawHeaders)) return false;
  return rawHeaders.filter((name) => name === "Connection").length > MANY;
}

/**
 * Spins for this much CPU time, in milliseconds. System time counts, since reading the clock is mostly a system call.
 */
function spend(ms: number): void {
  const until = spentMs() + ms;
  while (spentMs() < until);
}

function spentMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
