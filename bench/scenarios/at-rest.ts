import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { startSink } from "../backends/sink.ts";
import { settledMemory } from "../machine/settle.ts";
import { PEERS } from "../peers.ts";
import type { Row } from "../report/results.ts";
import { ask } from "./ask.ts";
import { inTurns } from "./rounds.ts";
import type { Bench } from "./scenario.ts";

/** For a while after the start, garbage is collected and code is compiled. */
const SETTLE_MS = 5_000;
const MEASURED_MS = 20_000;

/** Measures the CPU and memory of a process without requests. */
export async function measureAtRest(bench: Bench, scenario: string): Promise<readonly Row[]> {
  if (!bench.peers.includes("sallyport")) return [];
  const { setting, rounds, say } = bench;
  await using sink = await startSink();
  const place = { backend: sink.port, tls: true, cores: "own" } as const;
  const contender = {
    peer: "sallyport" as const,
    variant: "TLS, after one request",
    async measure() {
      await using running = await PEERS.sallyport.start(setting, place);
      const { pid, port } = running;
      const token = await setting.keys.ES256.sign();
      const question = { port, ca: setting.certificate.pem, path: "/orders/4711", token };
      const { status } = await ask(question);
      if (status !== 200) throw new Error(`answers ${status} to a valid token`);
      const resident = (await settledMemory(pid)) / 1e6;
      await delay(SETTLE_MS);
      const before = cpuMilliseconds(pid);
      await delay(MEASURED_MS);
      const used = cpuMilliseconds(pid) - before;
      return { idle: used / (MEASURED_MS / 1000), resident };
    },
  };
  return await inTurns(scenario, [contender], rounds, say);
}

/** Returns the CPU time of all threads from the scheduler, since `/proc/<pid>/stat` counts only in hundredths of a second. */
function cpuMilliseconds(pid: number): number {
  const tasks = `/proc/${pid}/task`;
  return readdirSync(tasks).reduce((sum, task) => {
    const [nanoseconds = "0"] = readFileSync(`${tasks}/${task}/schedstat`, "latin1").split(" ");
    return sum + Number(nanoseconds) / 1e6;
  }, 0);
}
