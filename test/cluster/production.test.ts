/** The sample in production: the autoscaler keeps two pods, and the budget lets one of them be evicted at a time. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyNoCluster } from "./cluster.ts";
import { containerOf, expectNoViolation, onePod, podsOf } from "./pods.ts";
import { applySample } from "./samples.ts";
import { Space } from "./space.ts";

const APP = "app=orders";

describe.skipIf(whyNoCluster() !== undefined)("the sample in production", () => {
  let space: Space;
  beforeAll(async () => {
    space = await Space.open("production");
    expect(await applySample(space, "sample-in-production")).toBe("");
  });
  afterAll(() => space?.close());

  test("is brought to two pods by the autoscaler, which answer", async () => {
    const two = "--for=jsonpath={.status.readyReplicas}=2";
    await space.kubectl(["wait", "deployment/orders", two, "--timeout=180s"]);
    expect(await space.statuses("orders", 443)).toEqual([401, 200]);
    const { spec } = await onePod(space, APP);
    expect(spec.serviceAccountName).toBe("orders");
    await expectNoViolation(space);
  });

  test("loses one pod at a time", async () => {
    const [first, second] = await podsOf(space, APP);
    if (first === undefined || second === undefined) throw new Error("there are no two pods");
    expect(containerOf(first, "sallyport").restartCount).toBe(0);
    await evict(first.metadata.name);
    await expect(evict(second.metadata.name)).rejects.toThrow("disruption budget");
  });

  /** As a drain of its node asks for it. */
  async function evict(name: string): Promise<void> {
    const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name } };
    const path = `/api/v1/namespaces/${space.name}/pods/${name}/eviction`;
    await space.kubectl(["create", "--raw", path, "-f", "-"], JSON.stringify(eviction));
  }
});
