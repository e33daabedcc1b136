import { parseArgs } from "node:util";
import { CLASS_NAMES, type ClassName, isClassName } from "./classes.ts";

export const HELP = `Usage: npm run fuzz -- [options]

Sends generated requests to Sallyport over raw sockets, in HTTP/1.1 and HTTP/2, and generated configurations to its
check, and reports findings. The exit code is 1 if there are any. Nothing leaves this machine.

  --seconds S     duration (60)
  --seed N        seed (default: random)
  --only a,b      kinds of input (${CLASS_NAMES.join(",")}; default: all)
  --path P        runs only one case of the seed and kind, as printed by a finding
  -h, --help      this text

SALLYPORT_ENTRY names the file to start instead of src/main.ts, such as dist/main.js.
`;

export interface Arguments {
  readonly seconds: number;
  readonly seed: number;
  readonly classes: readonly ClassName[];
  /** One case of one class. */
  readonly single: { readonly name: ClassName; readonly path: string } | undefined;
  readonly help: boolean;
}

/** Parses the arguments. Throws an error with a one-line message if one is invalid. */
export function readArguments(args: readonly string[]): Arguments {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seconds: { type: "string", default: "60" },
      seed: { type: "string" },
      only: { type: "string" },
      path: { type: "string" },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  const classes = values.only === undefined ? CLASS_NAMES : values.only.split(",").map(className);
  return {
    seconds: wholeNumber("seconds", values.seconds, 1, 86_400),
    seed: wholeNumber("seed", values.seed ?? String(Date.now() % SEEDS), 0, SEEDS),
    classes,
    single: values.path === undefined ? undefined : single(values.path, classes),
    help: values.help,
  };
}

/** Seeds are below this limit, so that they can be incremented. */
const SEEDS = 1_000_000_000;

function className(text: string): ClassName {
  if (isClassName(text)) return text;
  throw new Error(`There is no class "${text}"; there are ${CLASS_NAMES.join(", ")}`);
}

function single(path: string, classes: readonly ClassName[]): Arguments["single"] {
  const [name, another] = classes;
  if (name === undefined || another !== undefined)
    throw new Error("--path needs --only with one class");
  if (!/^\d+(?::\d+)*$/.test(path)) throw new Error("--path needs numbers separated by colons");
  return { name, path };
}

function wholeNumber(name: string, text: string, least: number, most: number): number {
  const number = Number(text);
  if (Number.isInteger(number) && number >= least && number <= most) return number;
  throw new Error(`--${name} must be a whole number from ${least} to ${most}`);
}
