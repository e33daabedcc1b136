import { parseArgs } from "node:util";

export const HELP = `Usage: npm run soak -- [options]

Runs Sallyport under mixed traffic and faults, and then checks that nothing was lost, nothing leaked, and
everything counted. The exit code is 1 if a check fails. Ctrl-C ends the traffic early and reports; a
second one ends the run immediately. Nothing leaves this machine. Linux only.

  --minutes M           duration; may be a fraction (10)
  --seed N              repeats the choices of a run (default: random)
  --rate R              requests and streams started per second (200)
  --workers N           threads of Sallyport (1)
  --json FILE           writes the report to a file, too
  -h, --help            this text
`;

export interface Arguments {
  readonly seconds: number;
  readonly seed: number;
  readonly rate: number;
  readonly workers: number;
  readonly json: string | undefined;
  readonly help: boolean;
}

/** Parses the arguments. Throws an error with a one-line message if one is invalid. */
export function readArguments(args: readonly string[]): Arguments {
  const { values } = parseArgs({
    args: [...args],
    options: {
      minutes: { type: "string", default: "10" },
      seed: { type: "string", default: String(Math.floor(Math.random() * 2 ** 31)) },
      rate: { type: "string", default: "200" },
      workers: { type: "string", default: "1" },
      json: { type: "string" },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  return {
    seconds: 60 * number("minutes", values.minutes, 0.05, 24 * 60),
    seed: whole("seed", values.seed, 0, 2 ** 32 - 1),
    rate: number("rate", values.rate, 1, 10_000),
    workers: whole("workers", values.workers, 1, 64),
    json: values.json,
    help: values.help,
  };
}

function number(name: string, text: string, least: number, most: number): number {
  const value = Number(text);
  if (text.trim() !== "" && value >= least && value <= most) return value;
  throw new Error(`--${name} must be a number from ${least} to ${most}`);
}

function whole(name: string, text: string, least: number, most: number): number {
  const value = number(name, text, least, most);
  if (Number.isInteger(value)) return value;
  throw new Error(`--${name} must be a whole number`);
}
