import { expect, test } from "vitest";
import { ask } from "../support/ask.ts";
import { startEchoBackend } from "../support/echo-backend.ts";
import { startSallyport } from "../support/sallyport.ts";

test("the threads of a process share a rate limit", async () => {
  await using backend = await startEchoBackend();
  const rateLimit = { requests: 5, within: "12h" };
  await using gate = await startSallyport({
    target: backend.url,
    config: {
      server: { workers: 3 },
      routes: [
        { name: "public", path: "/public", auth: "none", rateLimit, upstream: "app" },
        { name: "few", path: "/few", rateLimit, upstream: "app" },
        { name: "all", path: "/", upstream: "app" },
      ],
    },
  });
  const { token } = gate;
  for (const [path, headers] of [
    ["/few/x", { token }],
    ["/public/x", {}],
  ] as const) {
    // Each on its own connection, which any thread may accept.
    const answers = await Promise.all(Array.from({ length: 30 }, () => ask(gate, path, headers)));
    const having = (code: number): number => answers.filter(({ status }) => status === code).length;
    expect([having(200), having(429)]).toEqual([5, 25]);
  }
  expect((await ask(gate, "/x", { token })).status).toBe(200);
});
