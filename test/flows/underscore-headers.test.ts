/** `server.underscoreHeaders` follows a reload, and `explain` reports what it does to a request. */
import { expect, it } from "vitest";
import type { Explanation } from "../../src/core/explanation.ts";
import { ask } from "../support/ask.ts";
import { startEchoBackend } from "../support/echo-backend.ts";
import { editConfiguration } from "../support/edits.ts";
import { startSallyport } from "../support/sallyport.ts";
import { until } from "../support/until.ts";

it.each([1, 2])(
  "with %i worker(s): a reload changes it, and explain reports its effect",
  { timeout: 60_000 },
  async (workers) => {
    await using backend = await startEchoBackend();
    await using gate = await startSallyport({
      withoutToken: true,
      target: backend.url,
      config: { server: { workers } },
    });
    const send = () => ask(gate, "/public/x", { headers: { X_Own: "1" } });
    const change = async (policy: string): Promise<void> => {
      const reloads = (): number =>
        gate.log().filter(({ msg }) => msg === "the configuration was reloaded").length;
      const before = reloads();
      await editConfiguration(gate, ({ server }) => {
        server["underscoreHeaders"] = policy;
      });
      await until(() => reloads() > before);
    };
    const explain = async (): Promise<Explanation> => {
      const page = "/-/explain?url=/public/x&header=X_Own:+1&header=X-Kept:+2";
      return JSON.parse((await ask({ port: gate.adminPort }, page)).body) as Explanation;
    };
    const namesSeen = (): string[] =>
      backend.requests.at(-1)?.rawHeaders.filter((text, i) => i % 2 === 0 && text.includes("_")) ??
      [];

    expect((await send()).status).toBe(200);
    expect(namesSeen()).toEqual(["X_Own"]);
    expect((await explain()).notes).toEqual([]);

    await change("drop");
    expect((await send()).status).toBe(200);
    expect(namesSeen()).toEqual([]);
    expect(await explain()).toMatchObject({
      verdict: { outcome: "forwarded" },
      notes: ["server.underscoreHeaders drops X_Own"],
    });

    await change("reject");
    expect((await send()).status).toBe(400);
    expect((await explain()).verdict).toMatchObject({
      outcome: "refused",
      status: 400,
      reason: "underscore_header",
      detail: "x_own: server.underscoreHeaders is reject",
    });
  },
);
