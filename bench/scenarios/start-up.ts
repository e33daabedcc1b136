import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { startSink } from "../backends/sink.ts";
import { freePort } from "../machine/ports.ts";
import { settledMemory } from "../machine/settle.ts";
import { startSallyport } from "../peers/sallyport.ts";
import type { Row } from "../report/results.ts";
import { installProduct, occupiedBytes } from "../setting/product.ts";
import { ask } from "./ask.ts";
import { inTurns, messageOf, voidRow } from "./rounds.ts";
import type { Bench } from "./scenario.ts";

/** Measures the time from the start to a 200 of `/readyz`, and the size of a production installation without Node. */
export async function measureStartUp(bench: Bench, scenario: string): Promise<readonly Row[]> {
  if (!bench.peers.includes("sallyport")) return [];
  const { setting, rounds, say } = bench;
  const directory = join(setting.directory, "installed");
  say(`${scenario}: installing for production`);
  try {
    const entry = await installProduct(directory, dirname(setting.entry));
    const installed = (await occupiedBytes(directory)) / 1e6;
    await using sink = await startSink();
    const contender = {
      peer: "sallyport" as const,
      variant: "installed for production",
      async measure() {
        const place = { backend: sink.port, tls: true, cores: "all" } as const;
        const adminPort = await freePort();
        const began = performance.now();
        const starting = startSallyport(setting, place, { entry, adminPort });
        const [ms] = await Promise.all([ready(adminPort, began), starting]);
        await using running = await starting;
        return { ready: ms, installed, resident: (await settledMemory(running.pid)) / 1e6 };
      },
    };
    return await inTurns(scenario, [contender], rounds, say);
  } catch (error) {
    return [voidRow(scenario, "installed for production", "sallyport", messageOf(error))];
  }
}

/** Returns the milliseconds from `began` to the first 200 of `/readyz`. */
async function ready(port: number, began: number): Promise<number> {
  const page = { port, ca: undefined, path: "/readyz" };
  const status = (): Promise<number> =>
    ask(page).then(
      ({ status }) => status,
      () => 0,
    );
  while ((await status()) !== 200) {
    if (performance.now() > began + 10_000) throw new Error("it was not ready in ten seconds");
    await delay(2);
  }
  return performance.now() - began;
}
