import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { editConfiguration } from "../support/edits.ts";
import { startPlainBackend } from "../support/plain-backend.ts";
import { startSallyport } from "../support/sallyport.ts";
import { until } from "../support/until.ts";

it("connections that a reload no longer uses close with their last request, and not before", async () => {
  const sockets: Socket[] = [];
  const held: ServerResponse[] = [];
  await using backend = await startPlainBackend((request, response) => {
    sockets.push(request.socket);
    held.push(response);
  });
  await using gate = await startSallyport({ target: backend.url });
  const answers = [1, 2].map((path) => ask(gate, `/${path}`, { token: gate.token }));
  await until(() => held.length === 2);

  await editConfiguration(gate, (config) => {
    Object.assign(config.upstreams["app"] ?? {}, { connections: 11 });
  });
  const { status } = await ask({ port: gate.adminPort }, "/-/reload", { method: "POST" });
  expect(status).toBe(200);
  held[0]?.end("first");
  expect((await Promise.race(answers)).body).toBe("first");
  expect(held[1]?.destroyed).toBe(false);
  held[1]?.end("second");
  expect((await Promise.all(answers)).map((answer) => answer.status)).toEqual([200, 200]);
  await until(() => sockets.every(({ destroyed }) => destroyed), 3_000);
}, 30_000);
