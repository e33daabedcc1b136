import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { startSink } from "../backends/sink.ts";
import { settledMemory } from "../machine/settle.ts";
import { startSallyport } from "../peers/sallyport.ts";
import type { Row } from "../report/results.ts";
import { installProduct, occupiedBytes } from "../setting/product.ts";
import { ask } from "./ask.ts";
import { inTurns, messageOf, voidRow } from "./rounds.ts";
import type { Bench } from "./scenario.ts";

/** How long it takes from the start to a 200 of `/readyz`, and what production installs, without Node. */
export async function measureStartUp(bench: Bench, scenario: string): Promise<readonly Row[]> {
  if (!bench.peers.includes("sallyport")) return [];
  const { setting, rounds, say } = bench;
  const directory = join(setting.directory, "installed");
  say(`${scenario}: installs for production`);
  try {
    const entry = await installProduct(directory, dirname(setting.entry));
    const installed = (await occupiedBytes(directory)) / 1e6;
    await using sink = await startSink();
    const contender = {
      peer: "sallyport" as const,
      variant: "installed for production",
      async measure() {
        const began = performance.now();
        const place = { backend: sink.port, tls: true };
        await using running = await startSallyport(setting, place, { entry });
        await ready(running.adminPort ?? 0);
        const ms = performance.now() - began;
        return { ready: ms, installed, resident: (await settledMemory(running.pid)) / 1e6 };
      },
    };
    return await inTurns(scenario, [contender], rounds, say);
  } catch (error) {
    return [voidRow(scenario, "installed for production", "sallyport", messageOf(error))];
  }
}

async function ready(port: number): Promise<void> {
  const deadline = performance.now() + 10_000;
  while ((await ask({ port, ca: undefined, path: "/readyz" })).status !== 200) {
    if (performance.now() > deadline) throw new Error("it was not ready within ten seconds");
    await delay(2);
  }
}
