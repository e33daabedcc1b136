import { FaultWindows } from "./accounts/fault-windows.ts";
import { Ledger } from "./accounts/ledger.ts";
import { LogBook } from "./accounts/log-book.ts";
import { chosenEntry, deploy } from "./deployment/deployment.ts";
import { createDice } from "./dice.ts";
import { FAULTS } from "./faults/faults.ts";
import { runFaults } from "./faults/schedule.ts";
import { openDescriptors, processState } from "./machine/process-state.ts";
import { comeToRest, type Rest } from "./machine/rest.ts";
import { takeSamples } from "./machine/samples.ts";
import { finding } from "./report/finding.ts";
import type { Report } from "./report/report.ts";
import { judgeRequests } from "./report/requests.ts";
import { judgeResources } from "./report/resources.ts";
import { judgeTotals } from "./report/totals.ts";
import { Client } from "./traffic/client.ts";
import { drive } from "./traffic/driver.ts";
import type { World } from "./traffic/kind.ts";
import { KINDS } from "./traffic/kinds.ts";
import { prepareTokens } from "./traffic/tokens.ts";

export interface SoakOptions {
  /** The length of traffic with faults, after warming up. */
  readonly seconds: number;
  readonly seed: number;
  /** Pieces of traffic per second. */
  readonly rate: number;
  readonly workers: number;
  /** The script that starts Sallyport; by default, the built one if it exists, otherwise the source. */
  readonly entry?: string;
  /** Ends the traffic early; the report is still created. */
  readonly stop?: AbortSignal;
  readonly say?: (text: string) => void;
}

/** The time until everything must be at rest after traffic, in milliseconds. */
const REST_MS = 40_000;

/** Runs Sallyport under mixed traffic and faults, and judges what is left afterwards. Rejects if Sallyport dies. */
export async function soak(options: SoakOptions): Promise<Report> {
  const { seconds, seed, rate, workers, entry = chosenEntry() } = options;
  const { say = () => undefined } = options;
  const windows = new FaultWindows();
  const ledger = new Ledger(windows);
  const book = new LogBook((line) => ledger.line(line));
  await using deployment = await deploy({ entry, workers, book });
  const { pid, died } = deployment;
  const stop = AbortSignal.any([died, ...(options.stop === undefined ? [] : [options.stop])]);
  const untouched = processState(pid);
  const client = new Client({ ...deployment, asked: (asked) => ledger.asked(asked) });
  const tokens = await prepareTokens(client, deployment);
  const world: World = { deployment, client, ledger, tokens, dice: createDice(seed) };
  const sockets = untouched.descriptors["socket"] ?? 0;
  const rest = (earlier?: Rest): Promise<Rest> => {
    died.throwIfAborted();
    client.close();
    return comeToRest({
      pid,
      adminPort: deployment.adminPort,
      inspector: deployment.inspector,
      sockets,
      base: earlier,
      also: () => unaccounted(ledger),
      timeoutMs: REST_MS,
    });
  };

  say(
    `warming up: Sallyport is process ${pid}, port ${deployment.port}, admin ${deployment.adminPort}`,
  );
  const warmingMs = Math.min(20_000, seconds * 250);
  await drive(world, KINDS, warmingMs, { rate, stop });
  const base = await rest();
  say(`at rest: ${openDescriptors(base.state)} descriptors; traffic for ${seconds} s`);

  const sampling = new AbortController();
  const everyMs = Math.min(10_000, Math.max(250, seconds));
  const samples = takeSamples(deployment, everyMs, sampling.signal);
  const paceMs = Math.min(4_000, seconds * 30);
  const startedMs = performance.now();
  const faultWorld = { ...world, dice: createDice(seed + 1) };
  const [driven, faults] = await Promise.all([
    drive(world, KINDS, seconds * 1_000, { rate, stop }),
    runFaults({
      world: faultWorld,
      windows,
      book,
      stop,
      paceMs,
      faults: FAULTS,
      forMs: seconds * 1_000 - 2 * paceMs,
    }),
  ]);
  const lastedMs = performance.now() - startedMs;
  sampling.abort();
  const looks = await samples;
  say("the traffic has ended; waiting until all is quiet");
  const end = await rest(base);
  const code = await deployment.stop();
  const { troubles } = faults;

  return {
    seed,
    entry,
    workers,
    ...driven,
    seconds: lastedMs / 1_000,
    cutShort: stop.aborted,
    right: ledger.right.toJSON(),
    excused: ledger.excused.toJSON(),
    faults: faults.ended.toJSON(),
    samples: looks,
    findings: [
      ...judgeRequests(ledger, book),
      ...judgeTotals(book, end.metrics),
      ...judgeResources({ base, end, samples: looks }),
      finding(
        "faults not met as promised",
        troubles.count === 0,
        troubles.count,
        0,
        troubles.examples,
      ),
      finding("exit code after SIGTERM", code === 0, code, 0),
    ],
  };
}

/** Returns a text about unmatched requests: a log line is written a moment after the answer. */
function unaccounted({ withoutLine, withoutClient }: Ledger): string | undefined {
  const open = withoutLine.length + withoutClient.length;
  return open === 0 ? undefined : `${open} requests have no log line, or log lines no request`;
}
