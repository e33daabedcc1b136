/** `npm run bench`: compares Sallyport with other proxies, side by side on this machine. */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Arguments, HELP, readArguments } from "./arguments.ts";
import { run } from "./machine/children.ts";
import { DIVISION, keepToOwnCores } from "./machine/cores.ts";
import { describeMachine, hasPackage, packageVersion } from "./machine/programs.ts";
import { PEERS } from "./peers.ts";
import { writeDocument } from "./report/document.ts";
import type { Absence, Results, Row } from "./report/results.ts";
import { renderResults, renderTargets } from "./report/tables.ts";
import { judge } from "./report/targets.ts";
import { type ScenarioName, SCENARIOS } from "./scenarios.ts";
import { messageOf, voidRow } from "./scenarios/rounds.ts";
import type { Bench } from "./scenarios/scenario.ts";
import { buildProduct, REPOSITORY } from "./setting/product.ts";
import { prepareSetting } from "./setting/setting.ts";

const PACKAGES = [
  ...["@fastify/http-proxy", "@fastify/jwt", "express", "express-jwt", "fastify"],
  ...["http-proxy-3", "http-proxy-middleware", "jose"],
];

/** @returns the exit code. */
async function main(args: readonly string[]): Promise<number> {
  const chosen = readArguments(args);
  if (chosen.help) {
    console.log(HELP);
    return 0;
  }
  if (chosen.writeDocs) {
    const results: Results = JSON.parse(await readFile(chosen.json, "utf8"));
    console.log(`written: ${await writeDocument(results)}`);
    return 0;
  }
  const results = await measure(chosen);
  console.log(renderResults(results));
  if (!chosen.targets) return 0;
  console.log(`\n${renderTargets(results)}`);
  return judge(results).some(({ word }) => word === "FAIL") ? 1 : 0;
}

/** Runs the scenarios one after the other. The file contains the figures of all that have ended. */
async function measure(chosen: Arguments): Promise<Results> {
  const { scenarios, peers, rounds, seconds, json } = chosen;
  const absent: Absence[] = peers.flatMap((peer) => {
    const why = PEERS[peer].missing();
    return why === undefined ? [] : [{ peer, why }];
  });
  for (const { peer, why } of absent) say(`missing: ${peer} (${why})`);
  const present = peers.filter((name) => !absent.some(({ peer }) => peer === name));
  say("building Sallyport");
  await using setting = await prepareSetting((directory) =>
    buildProduct(join(directory, "product")),
  );
  await keepToOwnCores();
  const bench: Bench = { setting, peers: present, rounds, seconds, say };
  const rows: Row[] = [];
  const earlier = chosen.add ? await earlierRows(json) : [];
  const results: Results = {
    date: new Date().toISOString(),
    revision: await revision(),
    machine: await describeMachine(),
    divided: DIVISION !== undefined,
    packages: Object.fromEntries(
      PACKAGES.filter(hasPackage).map((name) => [name, packageVersion(name)]),
    ),
    rounds,
    seconds,
    absent,
    rows,
  };
  await mkdir(dirname(json), { recursive: true });
  for (const name of scenarios) {
    rows.push(...(await runScenario(name, bench)));
    // Ratios are only valid within one run, so a scenario is replaced completely.
    const kept = earlier.filter(({ scenario }) => !rows.some((row) => row.scenario === scenario));
    const all = { ...results, rows: [...kept, ...rows] };
    await writeFile(json, `${JSON.stringify(all, undefined, 2)}\n`);
  }
  return results;
}

/** Returns the rows of earlier runs in the file; none if it does not exist. */
async function earlierRows(json: string): Promise<readonly Row[]> {
  try {
    const results: Results = JSON.parse(await readFile(json, "utf8"));
    return results.rows;
  } catch {
    return [];
  }
}

/** Runs a scenario. If it cannot be set up, returns a row with the reason, so that the others can continue. */
async function runScenario(name: ScenarioName, bench: Bench): Promise<readonly Row[]> {
  try {
    return await SCENARIOS[name].run(bench);
  } catch (error) {
    return [voidRow(name, "the entire scenario", "sallyport", messageOf(error))];
  }
}

async function revision(): Promise<string> {
  try {
    const flags = ["describe", "--always", "--dirty", "--exclude=*"];
    return (await run("git", ["-C", REPOSITORY, ...flags])).trim();
  } catch {
    return "unknown";
  }
}

function say(text: string): void {
  console.error(text);
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
