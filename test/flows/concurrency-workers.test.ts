import { expect, test } from "vitest";
import { ask } from "../support/ask.ts";
import { startHoldingBackend } from "../support/holding-backend.ts";
import { startSallyport } from "../support/sallyport.ts";
import { until } from "../support/until.ts";

test("the threads of a process count requests in flight together", async () => {
  await using backend = await startHoldingBackend();
  await using gate = await startSallyport({
    target: backend.url,
    config: {
      server: { workers: 2 },
      routes: [
        { name: "few", path: "/few", concurrency: { requests: 3 }, upstream: "app" },
        { name: "all", path: "/", upstream: "app" },
      ],
    },
  });
  const { token } = gate;
  const held = ["/few/hold/1", "/few/hold/2", "/few/hold/3"];
  const running: ReturnType<typeof ask>[] = [];
  for (const path of held) {
    running.push(ask(gate, path, { token }));
    await until(() => backend.held().includes(path));
  }
  // Each on its own connection, which either thread may accept.
  const more = await Promise.all(Array.from({ length: 16 }, () => ask(gate, "/few/x", { token })));
  expect(new Set(more.map(({ status }) => status))).toEqual(new Set([429]));
  for (const path of held) backend.release(path);
  expect((await Promise.all(running)).map(({ status }) => status)).toEqual([200, 200, 200]);
  await until(async () => (await ask(gate, "/few/x", { token })).status === 200);
});
