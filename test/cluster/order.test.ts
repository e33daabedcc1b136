/** A pod that is deleted finishes what runs: first it drains, then the application ends, and the sidecar last. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ALICE } from "../support/sallyport.ts";
import { until } from "../support/until.ts";
import type { Answer } from "./client/send.ts";
import { whyNoCluster } from "./cluster.ts";
import { type Running, startKubectl } from "./kubectl.ts";
import { onePod } from "./pods.ts";
import { APP, protect } from "./protected.ts";
import { Space } from "./space.ts";

/** Seconds that requests take which run when the pod is deleted. The drain of the manifests waits for them. */
const SLOW = [3, 8, 15];

describe.skipIf(whyNoCluster() !== undefined)("a pod that is deleted", () => {
  let space: Space;
  beforeAll(async () => {
    space = await Space.open("order");
    await protect(space, { replicas: 1 });
  });
  afterAll(() => space?.close());

  test("answers what runs, and ends in order", async () => {
    const { metadata, status } = await onePod(space, APP);
    const logs = ["sallyport", "orders"].map((container) =>
      follow(space, metadata.name, container),
    );
    const peer = await space.peer(status.podIP, 8443);
    const token = await space.order<string>({ kind: "login", peer, credentials: ALICE });
    const asked = SLOW.map((seconds) =>
      space.order<Answer>({ kind: "ask", peer, path: `/slow?seconds=${seconds}`, token }),
    );
    await until(() => lines(logs[1], "slow request").length === SLOW.length, 30_000);

    const deleted = performance.now();
    await space.kubectl(["delete", "pod", metadata.name, "--timeout=90s"]);
    const seconds = (performance.now() - deleted) / 1000;

    const answers = await Promise.all(asked);
    expect(answers.map((answer) => answer.status)).toEqual(SLOW.map(() => 200));
    const [sallyport, orders] = logs;
    const moments = [
      lines(sallyport, "draining"),
      lines(orders, "told to stop"),
      lines(orders, "ended"),
      lines(sallyport, "asked to stop"),
    ].map(([line]) => Date.parse(line?.time ?? ""));
    expect(moments).not.toContain(NaN);
    expect(moments).toEqual(moments.toSorted((a, b) => a - b));
    console.log(
      `deleted after ${seconds.toFixed(1)} s; drain, stop, end, sidecar's stop at`,
      moments,
    );
    // The grace period of the manifests.
    expect(seconds).toBeLessThan(60);
  });
});

interface Log extends Running {
  text: string;
}

function follow(space: Space, pod: string, container: string): Log {
  const args = ["--namespace", space.name, "logs", "--follow", pod, "--container", container];
  const log: Log = { ...startKubectl(args), text: "" };
  log.child.stdout?.on("data", (chunk) => (log.text += String(chunk)));
  return log;
}

function lines(log: Log | undefined, msg: string): { time: string }[] {
  const all = (log?.text ?? "").split("\n").filter((line) => line.startsWith("{"));
  return all
    .map((line) => JSON.parse(line) as { time: string; msg: string })
    .filter((line) => line.msg === msg);
}
