import { join } from "node:path";
import { parseArgs } from "node:util";
import { isPeerName, PEER_NAMES, type PeerName } from "./peers.ts";
import { isScenarioName, SCENARIO_NAMES, type ScenarioName } from "./scenarios.ts";
import { REPOSITORY } from "./setting/product.ts";

export const HELP = `Usage: npm run bench -- [options]

Compares Sallyport with other proxies and prints tables. Nothing leaves this machine.

  --scenario a,b        the scenarios (${SCENARIO_NAMES.join(",")}; default: all)
  --peers a,b           the peers (${PEER_NAMES.join(",")});
                        default: all; Sallyport always takes part
  --rounds N            rounds (3)
  --seconds S           length of one measurement in whole seconds (5)
  --json FILE           the file for the figures, which --write-docs reads (.bench/results.json)
  --add                 keep the figures of other scenarios in the file, so that a long measurement can be made in parts
  --targets             compare the figures with the targets; the exit code is 1 if one is missed
  --write-docs          measure nothing; write the figures from the file into bench/RESULTS.md
  -h, --help            this text
`;

export interface Arguments {
  readonly scenarios: readonly ScenarioName[];
  readonly peers: readonly PeerName[];
  readonly rounds: number;
  readonly seconds: number;
  readonly json: string;
  readonly add: boolean;
  readonly targets: boolean;
  readonly writeDocs: boolean;
  readonly help: boolean;
}

/** Parses the arguments. Throws an error with a one-line message if one is invalid. */
export function readArguments(args: readonly string[]): Arguments {
  const { values } = parseArgs({
    args: [...args],
    options: {
      scenario: { type: "string" },
      peers: { type: "string" },
      rounds: { type: "string", default: "3" },
      seconds: { type: "string", default: "5" },
      json: { type: "string", default: join(REPOSITORY, ".bench/results.json") },
      add: { type: "boolean", default: false },
      targets: { type: "boolean", default: false },
      "write-docs": { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  const peers = chosen(values.peers, isPeerName, PEER_NAMES, "peer");
  return {
    scenarios: chosen(values.scenario, isScenarioName, SCENARIO_NAMES, "scenario"),
    peers: PEER_NAMES.filter((name) => name.startsWith("sallyport") || peers.includes(name)),
    rounds: count("rounds", values.rounds),
    seconds: count("seconds", values.seconds),
    json: values.json,
    add: values.add,
    targets: values.targets,
    writeDocs: values["write-docs"],
    help: values.help,
  };
}

function chosen<Name extends string>(
  text: string | undefined,
  isName: (text: string) => text is Name,
  all: readonly Name[],
  what: string,
): readonly Name[] {
  if (text === undefined) return all;
  return text.split(",").map((name) => {
    if (!isName(name))
      throw new Error(`There is no ${what} "${name}"; there are ${all.join(", ")}`);
    return name;
  });
}

function count(name: string, text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= 1 && value <= 600) return value;
  throw new Error(`--${name} must be a whole number from 1 to 600`);
}
