/**
 * Resumed sessions. A ticket contains the secret of its session, so anyone who has its key can resume any session,
 * and decrypt a recorded one (Springall, Durumeric, Halderman, "Measuring the Security Harm of TLS Crypto Shortcuts",
 * 2016). So the key must be the same wherever a client may come back to, and a replaced key must no longer be used.
 */
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { replaceFile } from "../support/edits.ts";
import { request } from "../support/raw-client.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";
import { tlsExchange } from "../support/tls-client.ts";
import { until } from "../support/until.ts";

const GET = request(["GET /livez HTTP/1.1", "Host: localhost", "Connection: close"]);
/** Each test starts up to three processes, while other tests run. */
const PATIENCE_MS = 120_000;
const VERSIONS = ["TLSv1.2", "TLSv1.3"] as const;
type Version = (typeof VERSIONS)[number];

const ticketKey = (): string => `${randomBytes(48).toString("base64")}\n`;

async function start({
  key,
  workers = 1,
}: { key?: string; workers?: number } = {}): Promise<Sallyport> {
  return startSallyport({
    withoutToken: true,
    target: "http://127.0.0.1:1",
    config: {
      server: { workers, ...(key !== undefined && { tls: { ticketKeyFile: "ticket.key" } }) },
    },
    ...(key !== undefined && { files: { "ticket.key": key } }),
  });
}

async function newSession(gate: Sallyport, version: Version): Promise<Buffer> {
  const { session, error, resumed } = await tlsExchange(gate, GET, only(version));
  expect([error, resumed]).toEqual([undefined, false]);
  if (session === undefined) throw new Error("no session was given out");
  return session;
}

/** Whether the session is resumed on a new connection, which must be answered in any case. */
async function resumes(gate: Sallyport, session: Buffer, version: Version): Promise<boolean> {
  const { raw, resumed } = await tlsExchange(gate, GET, { ...only(version), session });
  expect(raw).toMatch(/^HTTP\/1\.1 \d\d\d /);
  return resumed;
}

const only = (version: Version) => ({
  minVersion: version,
  maxVersion: version,
  timeoutMs: PATIENCE_MS / 4,
});

it(
  "every worker resumes sessions of the others",
  async () => {
    await using gate = await start({ workers: 3 });
    for (const version of VERSIONS) {
      const session = await newSession(gate, version);
      // The system chooses the worker: with a probability of 1 in 3^11, all connections go to the same one.
      const all = await Promise.all(
        Array.from({ length: 12 }, () => resumes(gate, session, version)),
      );
      expect(all).toEqual(Array(12).fill(true));
    }
  },
  PATIENCE_MS,
);

it(
  "a replica resumes sessions of another one if they share the key",
  async () => {
    const key = ticketKey();
    await using one = await start({ key });
    await using other = await start({ key });
    await using stranger = await start();
    for (const version of VERSIONS) {
      const session = await newSession(one, version);
      expect(await resumes(other, session, version)).toBe(true);
      expect(await resumes(stranger, session, version)).toBe(false);
    }
  },
  PATIENCE_MS,
);

describe("one replica", () => {
  let gate: Sallyport;
  beforeAll(async () => (gate = await start({ key: ticketKey() })), PATIENCE_MS);
  afterAll(() => gate.close());

  it.each(VERSIONS)(
    "resumes no session of the old key with a new one: %s",
    async (version) => {
      const session = await newSession(gate, version);
      expect(await resumes(gate, session, version)).toBe(true);
      await replaceFile(gate, "ticket.key", ticketKey());
      await until(async () => !(await resumes(gate, session, version)), PATIENCE_MS / 2);
      const next = await newSession(gate, version);
      expect(await resumes(gate, next, version)).toBe(true);
    },
    PATIENCE_MS,
  );

  it(
    "keeps its key if the file no longer holds one, and does not log the content",
    async () => {
      const session = await newSession(gate, "TLSv1.3");
      const short = randomBytes(47).toString("base64");
      await replaceFile(gate, "ticket.key", short);
      await until(
        () => gate.log().some((line) => JSON.stringify(line).includes("48 bytes in base64")),
        PATIENCE_MS / 2,
      );
      expect(JSON.stringify(gate.log())).not.toContain(short);
      expect(await resumes(gate, session, "TLSv1.3")).toBe(true);
    },
    PATIENCE_MS,
  );
});
