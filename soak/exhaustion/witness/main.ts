/**
 * A well-behaved client and a kubelet, in a separate program, with separate addresses: the client sends requests with a token
 * at a steady rate over keep-alive and new connections, the kubelet requests /livez. Takes the options as JSON in the first
 * argument, prints "asking" when the first answers have arrived, and after SIGTERM its observations as JSON.
 */
import { Agent as HttpAgent, request as httpRequest } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { setTimeout as delay } from "node:timers/promises";
import { ownDelayMs } from "./own-turns.ts";
import type { Seen, Slowest, Testimony, WitnessOptions } from "./witness.ts";

const options: WitnessOptions = JSON.parse(process.argv[2] ?? "{}");
const { port, adminPort, calmPort, ca, token, path } = options;
const CLIENT = "127.0.0.2";
const KUBELET = "127.0.0.3";
/** How often each kind of request is sent, in milliseconds. */
const EVERY = { kept: 100, fresh: 400, livez: 400, calm: 200 };
/** No answer after this time is a failure. */
const PATIENCE_MS = 5_000;

type Kind = keyof typeof EVERY;

const KINDS = ["kept", "fresh", "livez", "calm"] as const;
const observed = { kept: nothing(), fresh: nothing(), livez: nothing(), calm: nothing() };
const agent =
  ca === undefined ? new HttpAgent({ keepAlive: true }) : new HttpsAgent({ keepAlive: true, ca });
const calmAgent = new HttpAgent({ keepAlive: true });
const underWay = new Set<Promise<void>>();
const stopping = new AbortController();

let beganAt = performance.now();

/** The results of the requests of one kind: how long each successful one took, and why the others failed. */
interface Observed {
  readonly answers: Answer[];
  readonly failures: string[];
}

/** A successful request, with the time that it took without our own delay. */
interface Answer extends Slowest {
  readonly ms: number;
}

function nothing(): Observed {
  return { answers: [], failures: [] };
}

function summed({ answers, failures }: Observed): Seen {
  const ordered = answers.toSorted((one, other) => one.ms - other.ms);
  const at = (part: number): number => ordered[Math.ceil(ordered.length * part) - 1]?.ms ?? 0;
  return {
    answers: ordered.length,
    medianMs: at(0.5),
    p99Ms: at(0.99),
    slowestMs: at(1),
    failed: failures.length,
    failures: failures.slice(0, 3),
    slowest: ordered.at(-1),
    ownMs: Math.max(0, ...answers.map(({ ownMs }) => ownMs)),
  };
}

/** Sends one request. @param connected called when a new connection for it is open, including the TLS handshake. */
function exchange(kind: Kind, connected: () => void): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const main = kind === "kept" || kind === "fresh";
  const secure = main && ca !== undefined;
  const sent = (secure ? httpsRequest : httpRequest)({
    host: "127.0.0.1",
    localAddress: kind === "livez" ? KUBELET : CLIENT,
    port: { kept: port, fresh: port, livez: adminPort, calm: calmPort }[kind],
    path: { kept: path, fresh: path, livez: "/livez", calm: "/ok" }[kind],
    agent: { kept: agent, fresh: false, livez: false, calm: calmAgent }[kind],
    headers: main ? { authorization: `Bearer ${token}` } : {},
    ...(secure && { ca }),
  });
  sent.on("socket", (socket) => {
    if (socket.connecting) socket.once(secure ? "secureConnect" : "connect", connected);
  });
  const timer = setTimeout(() => sent.destroy(new Error("no answer")), PATIENCE_MS);
  sent.on("response", (response) => {
    response.on("error", reject).on("end", () => resolve(response.statusCode ?? 0));
    response.resume();
  });
  sent.on("error", reject).end();
  return promise.finally(() => clearTimeout(timer));
}

async function ask(kind: Kind): Promise<void> {
  const { answers, failures } = observed[kind];
  const began = performance.now();
  let connectedMs = 0;
  try {
    const status = await exchange(kind, () => (connectedMs = performance.now() - began));
    const now = performance.now();
    if (status !== 200) throw new Error(`status ${status}`);
    const ownMs = Math.min(ownDelayMs(), now - began);

    answers.push({ ms: now - began - ownMs, ownMs, connectedMs, afterMs: began - beganAt });
  } catch (error) {
    failures.push(error instanceof Error ? error.message : String(error));
  }
}

async function askAll(kind: Kind): Promise<void> {
  while (!stopping.signal.aborted) {
    const asked = ask(kind);
    underWay.add(asked);
    void asked.finally(() => underWay.delete(asked));
    await delay(EVERY[kind]);
  }
}

/** Compiles code and opens keep-alive connections first. */
async function warmUp(): Promise<void> {
  for (let i = 0; i < 20; i++) for (const kind of KINDS) await ask(kind);
  for (const kind of KINDS) {
    if (observed[kind].failures.length > 0) throw new Error(observed[kind].failures.join(", "));
    observed[kind] = nothing();
  }
  beganAt = performance.now();
}

process.on("SIGTERM", () => stopping.abort());
await warmUp();
console.log("asking");
await Promise.all(KINDS.map((kind) => askAll(kind)));
await Promise.all(underWay);
const { kept, fresh, livez, calm } = observed;
const result: Testimony = {
  kept: summed(kept),
  fresh: summed(fresh),
  livez: summed(livez),
  calm: summed(calm),
};
console.log(JSON.stringify(result));
process.exit(0);
