import { expect, test } from "vitest";
import { ask } from "../support/ask.ts";
import { startEchoBackend } from "../support/echo-backend.ts";
import { startSallyport } from "../support/sallyport.ts";
import { until } from "../support/until.ts";

test("the threads of a process count requests in flight together", async () => {
  await using backend = await startEchoBackend();
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
  const before = backend.requests.length;
  const slow = () => ask(gate, "/few/slow?ms=4000", { token });
  const running: ReturnType<typeof slow>[] = [];
  for (const held of [1, 2, 3]) {
    running.push(slow());
    await until(() => backend.requests.length === before + held);
  }
  // Each on a connection of its own, which either thread may accept.
  const more = await Promise.all(Array.from({ length: 16 }, () => ask(gate, "/few/x", { token })));
  expect(new Set(more.map(({ status }) => status))).toEqual(new Set([429]));
  expect((await Promise.all(running)).map(({ status }) => status)).toEqual([200, 200, 200]);
  await until(async () => (await ask(gate, "/few/x", { token })).status === 200);
});
