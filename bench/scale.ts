/** `npm run bench:scale`: what many replicas and users cost the state server. Needs redis-server or valkey-server. */
import { parseArgs } from "node:util";
import { type Cost, measureConstants } from "./scale/constants.ts";
import { measureKeySetFetches } from "./scale/key-sets.ts";
import { type Deployment, herd, KEPT_EVENTS, type Load, simulate } from "./scale/simulation.ts";

const HELP = `Usage: npm run bench:scale -- [options]

Measures what one event, one replica and one revocation cost, and computes the load of a deployment from that.

      --replicas N     (1000)
      --users N        (1000000)
      --key-sets       only how often the keys of a trusted issuer are fetched
  -h, --help           this text
`;

const PACES = [20, 50, 100].map((restMs) => ({ restMs, settleMs: 100 }));

async function main(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      replicas: { type: "string", default: "1000" },
      users: { type: "string", default: "1000000" },
      "key-sets": { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) return void process.stdout.write(HELP);
  const { perLife, ...parts } = await measureKeySetFetches();
  process.stdout.write(
    `key sets: ${perLife.toFixed(2)} fetches per replica in the lifetime of its keys, ${JSON.stringify(parts)}\n`,
  );
  if (values["key-sets"]) return;
  const constants = await measureConstants();
  for (const [name, value] of Object.entries(constants)) {
    process.stdout.write(
      `${name}: ${typeof value === "number" ? Math.round(value) : textOf(value)}\n`,
    );
  }
  for (const replicas of [3, 100, Number(values.replicas)]) {
    const deployment = deploymentOf(replicas, Number(values.users));
    for (const pace of PACES) {
      const load = simulate(deployment, constants, pace);
      process.stdout.write(`\n${replicas} replicas, ${JSON.stringify(pace)}\n${tableOf(load)}`);
    }
    const { revocations } = simulate(deployment, constants, { restMs: 100, settleMs: 100 });
    const back = JSON.stringify(herd(deployment, constants, { revocations: 0, events: 0 }));
    const started = JSON.stringify(
      herd(deployment, constants, { revocations, events: KEPT_EVENTS }),
    );
    process.stdout.write(`back after an outage: ${back}\nall started at once: ${started}\n`);
  }
}

function deploymentOf(replicas: number, users: number): Deployment {
  return {
    replicas,
    users,
    lifetime: 5 * 3_600,
    failing: 0.05,
    loggingOut: 0.1,
    limited: users / 20,
    active: users / 10,
  };
}

function textOf({ cpu, sent }: Cost): string {
  return `${cpu.toFixed(2)} us, ${sent.toFixed(0)} bytes`;
}

function tableOf(load: Load): string {
  return Object.entries(load)
    .map(([name, value]) => `  ${name}: ${value < 10 ? value.toFixed(3) : Math.round(value)}\n`)
    .join("");
}

await main(process.argv.slice(2));
