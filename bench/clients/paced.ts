/**
 * Sends requests over TLS at a fixed rate, whether or not earlier ones were answered. Takes the options as JSON in the first
 * argument. Prints "warm" when it begins to count, and finally as JSON the number of answers by status, and the time until
 * answers were complete.
 */
import { setTimeout as delay } from "node:timers/promises";
import { Pool } from "undici";
import type { Paced, PacedResult } from "../load/paced.ts";
import { forge } from "../setting/tokens.ts";

const paced: Paced = JSON.parse(process.argv[2] ?? "{}");
const { port, ca, path, method, perSecond, seconds, tokens, body } = paced;
const { newConnections = false, forged = false, connections = 64 } = paced;
const pool = new Pool(`https://127.0.0.1:${port}`, {
  connections,
  pipelining: 1,
  connect: { ca, ...(newConnections && { maxCachedSessions: 0 }) },
});
const WARM_UP_SECONDS = 1;
const statuses: Record<string, number> = {};
const times: number[] = [];

async function send(index: number): Promise<void> {
  const given = tokens[index % Math.max(1, tokens.length)];
  const token = given !== undefined && forged ? forge(given) : given;
  const began = performance.now();
  let status = "failed";
  try {
    const answer = await pool.request({
      method,
      path,
      headers: {
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && { "content-type": "application/json" }),
      },
      body: body ?? null,
      reset: newConnections,
    });
    await answer.body.dump();
    status = String(answer.statusCode);
  } catch {
    // Counted as failed.
  }
  times.push(performance.now() - began);
  statuses[status] = (statuses[status] ?? 0) + 1;
}

async function sendFor(seconds: number): Promise<void> {
  const sent: Promise<void>[] = [];
  const begin = performance.now();
  const total = Math.round(perSecond * seconds);
  while (sent.length < total) {
    const due = Math.min(total, Math.ceil(((performance.now() - begin) / 1000) * perSecond));
    while (sent.length < due) sent.push(send(sent.length));
    await delay(1);
  }
  await Promise.all(sent);
}

// Opens connections and compiles code first.
await sendFor(WARM_UP_SECONDS);
times.length = 0;
for (const status of Object.keys(statuses)) delete statuses[status];
console.log("warm");
await sendFor(seconds);
await pool.destroy();

const sorted = times.toSorted((a, b) => a - b);
const at = (share: number): number => sorted[Math.ceil(sorted.length * share) - 1] ?? 0;
const result: PacedResult = { statuses, p50Ms: at(0.5), p99Ms: at(0.99) };
console.log(`result ${JSON.stringify(result)}`);
