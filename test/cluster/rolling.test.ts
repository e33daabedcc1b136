/** Rolling updates, a deletion and scaling under load: no request is lost. */
import { afterAll, beforeAll, describe, test } from "vitest";
import { ALICE } from "../support/sallyport.ts";
import type { LoadReport } from "./client/load.ts";
import { whyNoCluster } from "./cluster.ts";
import { podsOf } from "./pods.ts";
import { APP, protect, restart, rolledOut, scale } from "./protected.ts";
import { expectNothingLost, STREAMS } from "./load.ts";
import { Space } from "./space.ts";

describe.skipIf(whyNoCluster() !== undefined)("under load", () => {
  let space: Space;
  beforeAll(async () => {
    space = await Space.open("rolling");
    await protect(space);
  });
  afterAll(() => space?.close());

  test("two rolling updates, a deletion and scaling lose no request", async () => {
    const peer = await space.peer("orders", 443);
    const load = await space.start<LoadReport>({
      kind: "load",
      peer,
      credentials: ALICE,
      streams: STREAMS,
    });
    await restart(space);
    await restart(space);
    const [pod] = await podsOf(space, APP);
    await space.kubectl(["delete", "pod", pod?.metadata.name ?? "", "--wait=false"]);
    await rolledOut(space);
    await scale(space, 4);
    await scale(space, 2);
    expectNothingLost("rolling", await load.stop(), 1_000);
  });
});
