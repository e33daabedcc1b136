/** Jobs with the sidecar: their work begins when it answers, it does not keep them from ending, and their exit code counts. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyNoCluster } from "./cluster.ts";
import { hardened } from "./manifests.ts";
import { containerOf, onePod } from "./pods.ts";
import { applyWithSidecar } from "./protected.ts";
import { Space } from "./space.ts";

const JOBS = [
  { name: "good", code: 0, condition: "Complete" },
  { name: "bad", code: 7, condition: "Failed" },
];

describe.skipIf(whyNoCluster() !== undefined)("Jobs", () => {
  let space: Space;
  beforeAll(async () => {
    space = await Space.open("jobs");
    const warned = await applyWithSidecar(
      space,
      JOBS.map(({ name, code }) => job(name, code)),
    );
    expect(warned).toBe("");
  });
  afterAll(() => space?.close());

  test.each(JOBS)("$name: exit code $code is $condition", async ({ name, code, condition }) => {
    await space.kubectl(["wait", `job/${name}`, `--for=condition=${condition}`, "--timeout=120s"]);
    const pod = await onePod(space, `job-name=${name}`);
    const [work, sidecar] = ["work", "sallyport"].map(
      (each) => containerOf(pod, each).state.terminated,
    );
    expect([work?.exitCode, sidecar?.exitCode]).toEqual([code, 0]);
    const { stdout } = await space.kubectl(["logs", pod.metadata.name, "--container=work"]);
    expect(stdout).toBe("200\n");
    const [ended, left] = [work, sidecar].map((each) => Date.parse(each?.finishedAt ?? ""));
    console.log(
      `job ${name}: the sidecar ended ${((left ?? NaN) - (ended ?? NaN)) / 1000} s after the work`,
    );
  });
});

function job(name: string, code: number): object {
  const work = `fetch("http://127.0.0.1:9464/readyz").then(({ status }) => {
    console.log(status);
    setTimeout(() => process.exit(${code}), 2000);
  })`;
  const container = {
    ...hardened("work", "sallyport"),
    command: ["/nodejs/bin/node", "--eval", work],
  };
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name, labels: { sallyport: "inject" } },
    spec: {
      backoffLimit: 0,
      template: { spec: { restartPolicy: "Never", containers: [container] } },
    },
  };
}
