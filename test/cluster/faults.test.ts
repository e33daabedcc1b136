/** A sidecar that is killed, one that hangs, and a worker that hangs, under load. */
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ALICE } from "../support/sallyport.ts";
import type { LoadReport } from "./client/load.ts";
import { whyNoCluster } from "./cluster.ts";
import { STREAMS, tell } from "./load.ts";
import { containerOf, evaluate, onePod, podsOf, restarts, waitFor } from "./pods.ts";
import { APP, protect } from "./protected.ts";
import { Space } from "./space.ts";

const MISBEHAVE = join(import.meta.dirname, "../support/misbehave.ts");
const SPEC = "/spec/template/spec";

/** Load before and after a fault, in milliseconds: the share of failures is that of the fault in a run of some length. */
const AROUND_MS = 6_000;

/** The first process of a container cannot be killed from within it, but from a process beside it. */
const SHARED = { op: "add", path: `${SPEC}/shareProcessNamespace`, value: true };

describe.skipIf(whyNoCluster() !== undefined)("in one of two replicas", () => {
  let space: Space;
  beforeEach(async () => {
    space = await Space.open("faults");
  });
  afterEach(() => space?.close());

  test("a sidecar that is killed is back in seconds; the application goes on", async () => {
    await protect(space, { patch: [SHARED] });
    const load = await loaded();
    const { metadata } = await onePod(space, APP);
    await delay(AROUND_MS);
    await signal(metadata.name, "SIGKILL");
    const back = await waitFor(space, metadata.name, restarts(1));
    const ready = await waitFor(space, metadata.name, "condition=Ready");
    await delay(AROUND_MS);
    const report = await load.stop();
    tell(`killed: restarted after ${back} ms, ready ${ready} ms later`, report);
    expect(containerOf(await podOf(metadata.name), "orders").restartCount).toBe(0);
    expect(back + ready).toBeLessThan(30_000);
    expect(report.failed / report.sent).toBeLessThan(0.1);
  });

  test("a sidecar that hangs is taken out of the Service, and replaced before the grace period of its pod", async () => {
    await protect(space, { patch: [SHARED] });
    const load = await loaded();
    const { metadata } = await onePod(space, APP);
    await signal(metadata.name, "SIGSTOP");
    const out = await waitFor(space, metadata.name, "condition=Ready=false");
    const back = await waitFor(space, metadata.name, restarts(1));
    const ready = await waitFor(space, metadata.name, "condition=Ready");
    const report = await load.stop();
    tell(
      `hung: out after ${out} ms, restarted ${back} ms later, ready after ${ready} ms more`,
      report,
    );
    // Three liveness probes of 10 s, and 10 s to end: with the pod's grace period it would be 90 s.
    expect(out + back + ready).toBeLessThan(75_000);
    expect(containerOf(await podOf(metadata.name), "orders").restartCount).toBe(0);
  });

  test("a worker that hangs is noticed and replaced, without a restart of the container", async () => {
    await protect(space, { files: [MISBEHAVE], patch: MISBEHAVING });
    const { metadata, status } = await onePod(space, APP);
    const watching = evaluate(space, metadata.name, "sallyport", WATCH_LIVEZ);
    const peer = await space.peer(status.podIP, 8443);
    await space
      .order({ kind: "ask", peer, path: "/x", headers: { "x-misbehave": "hang" } })
      .catch(() => undefined);
    const seen = JSON.parse(await watching) as { hungMs: number; says: string; replacedMs: number };
    console.log("a worker that hangs:", seen);
    expect(seen.says).toMatch(/^worker [01] has not served for \d+ s\n$/);
    expect(seen.replacedMs).toBeLessThan(40_000);
    expect(await space.statuses(status.podIP, 8443)).toEqual([401, 200]);
    expect(containerOf(await podOf(metadata.name), "sallyport").restartCount).toBe(0);
  });

  async function loaded() {
    const peer = await space.peer("orders", 443);
    return space.start<LoadReport>({ kind: "load", peer, credentials: ALICE, streams: STREAMS });
  }

  async function podOf(name: string) {
    const pod = (await podsOf(space, APP)).find(({ metadata }) => metadata.name === name);
    if (pod === undefined) throw new Error(`the pod ${name} is gone`);
    return pod;
  }

  /** Sends a signal to Sallyport, from the application's container. */
  async function signal(pod: string, name: NodeJS.Signals): Promise<void> {
    const script = `
      import { readdirSync, readFileSync } from "node:fs";
      const serves = (pid) => readFileSync("/proc/" + pid + "/cmdline", "utf8").includes("/app/dist/main.js\\0serve");
      const [pid] = readdirSync("/proc").filter((name) => /^\\d+$/.test(name) && serves(name));
      process.kill(Number(pid), "${name}");`;
    await evaluate(space, pod, "orders", script);
  }
});

/** Two workers, in which a request can make one hang. */
const MISBEHAVING = [
  {
    op: "add",
    path: `${SPEC}/initContainers/0/env`,
    value: [
      { name: "SALLYPORT_SERVER__WORKERS", value: "2" },
      { name: "NODE_OPTIONS", value: "--import /test/misbehave.ts" },
    ],
  },
  {
    op: "add",
    path: `${SPEC}/initContainers/0/volumeMounts/-`,
    value: { name: "test", mountPath: "/test", readOnly: true },
  },
];

/** Asks /livez until it has said 503, and then 200 again. */
const WATCH_LIVEZ = `
  const began = Date.now();
  const ask = async () => {
    const answer = await fetch("http://127.0.0.1:9464/livez");
    return { status: answer.status, text: await answer.text() };
  };
  const until = async (status) => {
    for (;;) {
      const seen = await ask();
      if (seen.status === status) return [Date.now() - began, seen.text];
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  };
  const [hungMs, says] = await until(503);
  const [replacedMs] = await until(200);
  console.log(JSON.stringify({ hungMs, says, replacedMs }));`;
