/** `npm run soak:exhaustion`: measures how much memory strangers, clients and neighbours can make the process use. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { keepToOwnCores } from "../../bench/machine/cores.ts";
import { HELP, readArguments } from "./arguments.ts";
import { ATTACKS } from "./attacks.ts";
import type { Attack } from "./attacks/attack.ts";
import { battle } from "./battle.ts";
import { heading, row } from "./table.ts";
import type { Judged } from "./verdict.ts";

const BUILT = join(import.meta.dirname, "../../dist/main.js");

interface Round {
  readonly attack: Attack;
  readonly tls: boolean;
  readonly workers: number;
}

/** @returns the exit code. */
async function main(args: readonly string[]): Promise<number> {
  const {
    help,
    list,
    json,
    entry = BUILT,
    bare,
    seconds,
    flags,
    memoryOnly,
    slowestMs,
    ...choice
  } = readArguments(args);
  if (help || list) {
    console.log(
      help ? HELP : ATTACKS.map(({ name, title }) => `${name.padEnd(22)}${title}`).join("\n"),
    );
    return 0;
  }
  await keepToOwnCores();
  console.log(heading());
  const results: Judged[] = [];
  for (const { attack, tls, workers } of roundsOf(choice)) {
    const judged = await battle(attack, {
      entry,
      bare,
      tls,
      workers,
      seconds,
      flags,
      memoryOnly,
      slowestMs,
    });
    console.log(row(judged));
    results.push(judged);
  }
  if (json !== undefined) await writeFile(json, `${JSON.stringify(results, undefined, 2)}\n`);
  const failed = results.filter(({ faults }) => faults.length > 0).length;
  console.log(`${results.length - failed} passed, ${failed} failed`);
  return failed === 0 || bare ? 0 : 1;
}

/** Returns every attack in every setting; for a quick run one of each class, alternately over TLS and plain HTTP. */
function roundsOf(
  choice: Pick<ReturnType<typeof readArguments>, "quick" | "only" | "over" | "workers">,
): Round[] {
  const { quick, only, over, workers } = choice;
  const attacks = ATTACKS.filter(
    ({ name, long }) => (only.length === 0 && !(quick && long)) || only.includes(name),
  );
  return workers.flatMap((workers) =>
    attacks.flatMap((attack, index) =>
      (quick && attack.over === undefined ? [over[index % over.length] ?? true] : over)
        .filter((tls) => attack.over === undefined || (attack.over === "tls") === tls)
        .map((tls) => ({ attack, tls, workers })),
    ),
  );
}

process.on("SIGINT", () => process.exit(130));
try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
