import { parseArgs } from "node:util";
import { CLASS_NAMES, type ClassName, isClassName } from "./classes.ts";
import { isKind, type Kind, KIND_NAMES, KINDS } from "./storm/kinds.ts";

/** The class whose cases are storms, each with a proxy of its own: see fuzz/storm. */
const STORM = "storm";
const NAMES: readonly string[] = [...CLASS_NAMES, STORM];

export const HELP = `Usage: npm run fuzz -- [options]

Sends generated requests to Sallyport over raw sockets, in HTTP/1.1 and HTTP/2, and generated configurations to its
check, and reports findings. In the class storm, odd clients meet odd backends. The exit code is 1 if there are findings.
Nothing leaves this machine.

  --seconds S     duration (60)
  --seed N        seed (default: random)
  --only a,b      kinds of input (${NAMES.join(",")}; default: all)
  --path P        runs only one case of the seed and kind, as printed by a finding
  --kinds a,b     what storms are made of (default: everything)
  --without a,b   what storms are not made of
  -h, --help      this text

SALLYPORT_ENTRY names the file to start instead of src/main.ts, such as dist/main.js.

What storms are made of:
${KIND_NAMES.map((kind) => `  ${kind.padEnd(14)}  ${KINDS[kind]}`).join("\n")}
`;

export interface Arguments {
  readonly seconds: number;
  readonly seed: number;
  readonly classes: readonly ClassName[];
  /** What storms are made of; undefined for no storms. */
  readonly storms: readonly Kind[] | undefined;
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
      kinds: { type: "string" },
      without: { type: "string" },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  const names = values.only === undefined ? NAMES : values.only.split(",");
  const classes = names.filter((name) => name !== STORM).map(className);
  return {
    seconds: wholeNumber("seconds", values.seconds, 1, 86_400),
    seed: wholeNumber("seed", values.seed ?? String(Date.now() % SEEDS), 0, SEEDS),
    classes,
    storms: names.includes(STORM) ? kindsOf(values) : undefined,
    single: values.path === undefined ? undefined : single(values.path, classes),
    help: values.help,
  };
}

/** Seeds are below this limit, so that they can be incremented. */
const SEEDS = 1_000_000_000;

function className(text: string): ClassName {
  if (isClassName(text)) return text;
  throw new Error(`There is no class "${text}"; there are ${NAMES.join(", ")}`);
}

function kindsOf(values: { kinds?: string; without?: string }): readonly Kind[] {
  const kinds = values.kinds?.split(",").map(kind) ?? KIND_NAMES;
  const without = values.without?.split(",").map(kind) ?? [];
  return kinds.filter((each) => !without.includes(each));
}

function kind(text: string): Kind {
  if (isKind(text)) return text;
  throw new Error(`There is no kind "${text}"; there are ${KIND_NAMES.join(", ")}`);
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
