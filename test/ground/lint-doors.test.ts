/**
 * The architecture holds only while the linter enforces it. This test plants imports in a tree that is laid out like
 * `src/`, with a copy of the real settings, one import on each line, and each must be refused by the rule that
 * it breaks. The legal imports between them must stay silent, so that a rule which refuses everything fails here too.
 */
import { spawnSync } from "node:child_process";
import {
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";

const ROOT = resolve(import.meta.dirname, "../..");
/** Runs with this test's Node: another one on the PATH may be too old to read settings in TypeScript. */
const OXLINT = join(ROOT, "node_modules/oxlint/bin/oxlint");
const TSGOLINT = join(ROOT, "node_modules/.bin/tsgolint");
const FEATURES = ["server", "credentials", "tokens", "policy", "upstream", "observe"];

/** A place, seen from src/, an import there, and part of the refusal; undefined if the import is legal. */
type Case = readonly [at: string, line: string, refusal: string | undefined];

/** Directions: for each place, what it may import and what it may not. */
const features = FEATURES.map((feature) => `${feature}/part.ts`);
const above = ["config/load.ts", "app/app.ts", "cli/serving/serve.ts", "entry.ts"];
type Names = readonly string[];
const DIRECTIONS: readonly (readonly [at: string, may: Names, mayNot: Names])[] = [
  ["lib/a.ts", ["lib/b.ts"], ["core/word.ts", ...features, ...above]],
  ["core/a.ts", ["lib/b.ts", "core/word.ts"], [...features, ...above]],
  ...features.map((own): readonly [string, Names, Names] => [
    own.replace("part", "a"),
    ["lib/b.ts", "core/word.ts", own],
    [...features.filter((sibling) => sibling !== own), ...above],
  ]),
  ["config/a.ts", ["lib/b.ts", "core/word.ts", ...features], above.slice(1)],
  ["app/app.ts", ["lib/b.ts", "core/word.ts", ...features, "config/load.ts"], above.slice(2)],
  ["cli/a.ts", ["core/word.ts", ...features, "config/load.ts", "app/app.ts"], ["entry.ts"]],
  ["entry.ts", ["cli/serving/serve.ts", "app/app.ts"], []],
  ["unplanned/a.ts", ["lib/b.ts", "core/word.ts"], [...features, ...above]],
];

/** Doors: each library, the place that may import it, and a neighbour that may not. */
const DOORS: readonly (readonly [library: string, inside: Names, outside: string])[] = [
  ["jose", ["tokens/a.ts"], "server/a.ts"],
  ["lru-cache", ["tokens/a.ts", "policy/a.ts"], "credentials/a.ts"],
  ["http-proxy-3", ["upstream/a.ts"], "server/a.ts"],
  ["prom-client", ["observe/a.ts"], "server/a.ts"],
  ["pino", ["observe/a.ts"], "app/app.ts"],
  ["zod", ["config/a.ts"], "cli/a.ts"],
  ["yaml", ["config/a.ts", "lib/files/positioned-yaml.ts"], "lib/a.ts"],
  ["smol-toml", [], "cli/a.ts"],
  ["bcryptjs", ["credentials/a.ts"], "tokens/a.ts"],
  ["selfsigned", ["server/tls/development-certificate.ts"], "server/a.ts"],
];

/** Mints: the function for each proof, its file in core, the place that may import it, and a neighbour that may not. */
const MINTS = [
  ["mintGateRequest", "gate-request", "server/request/intake.ts", "server/a.ts"],
  ["mintIdentity", "identity", "tokens/verify.ts", "policy/authorize.ts"],
  ["mintPermit", "permit", "policy/authorize.ts", "policy/a.ts"],
] as const;

/** Returns the import specifier of a file of src/, for a file at `at`. */
function specifier(target: string, at: string): string {
  return `${"../".repeat(at.split("/").length - 1) || "./"}${target}`;
}

/** The tools beside the product: only the table of commands may import them, and they may import little of src. */
const TOOLS: readonly Case[] = [
  ["cli/run.ts", 'await import("@sallyport/selftest");', undefined],
  ["cli/a.ts", 'await import("@sallyport/selftest");', "door: @sallyport "],
  ["app/app.ts", 'import "@sallyport/migrate";', "door: @sallyport "],
  [
    "cli/run.ts",
    'import "../../tools/selftest/selftest.ts";',
    "may not import a tool by its path.",
  ],
  ["lib/a.ts", 'import "../../tools/selftest/selftest.ts";', "may not import a tool by its path."],
  ...["lib/b.ts", "cli/command.ts", "cli/arguments.ts", "cli/terminal/format.ts"].map(
    (target): Case => ["../tools/selftest/a.ts", `import "../../src/${target}";`, undefined],
  ),
  ...["core/word.ts", ...features, ...above, "cli/run.ts"].map((target): Case => [
    "../tools/selftest/a.ts",
    `import "../../src/${target}";`,
    "may import of src only",
  ]),
  ["../tools/selftest/a.ts", 'await import("../../src/app/app.ts");', "may import of src only"],
  ["../tools/selftest/deep/a.ts", 'import "../../../src/core/word.ts";', "may import of src only"],
  ["../tools/selftest/a.ts", 'import "../migrate/nginx.ts";', "may not import another tool."],
  ["../tools/selftest/a.ts", 'import "@sallyport/migrate";', "door: @sallyport "],
  ["../tools/selftest/a.ts", 'import "yaml";', "door: yaml "],
  ["../tools/selftest/a.ts", 'import { Agent } from "node:http";', "costly: of node:http "],
  ["../tools/top/a.ts", 'import "../../src/core/status.ts";', undefined],
  ["../tools/top/a.ts", 'import "../../src/server/admin/status/a.ts";', undefined],
  ["../tools/top/a.ts", 'import "../../src/cli/serving/serve.ts";', "may import of src only"],
  ["../tools/demo/a.ts", 'import "../../src/cli/serving/serve.ts";', undefined],
  ["../tools/demo/a.ts", 'import "../../src/app/app.ts";', "may import of src only"],
  ["../tools/demo/a.ts", 'import "../init/init.ts";', "may not import another tool."],
  ["../tools/init/a.ts", 'import "../../src/tokens/keys/key-directory.ts";', undefined],
  ["../tools/init/a.ts", 'import "../../src/config/load.ts";', "may import of src only"],
  ["../tools/completion/a.ts", 'import "../../src/core/status.ts";', "may import of src only"],
  ["../tools/migrate/a.ts", 'import "yaml";', undefined],
  ["../tools/migrate/a.ts", 'import "smol-toml";', undefined],
];

const CASES: readonly Case[] = [
  ...TOOLS,
  ...DIRECTIONS.flatMap(([at, may, mayNot]) => [
    ...may.map((target): Case => [at, `import "${specifier(target, at)}";`, undefined]),
    ...mayNot.map((target): Case => {
      const refusal = `may not import ${target.split("/")[0]}.`;
      return [at, `import "${specifier(target, at)}";`, refusal];
    }),
  ]),
  ["policy/deep/a.ts", 'import "../../tokens/part.ts";', "may not import tokens."],
  ["policy/a.ts", 'import type { Any } from "../tokens/part.ts";', undefined],
  ["policy/a.ts", 'import { type Other, two } from "../tokens/part.ts";', "may not import tokens."],
  ["core/a.ts", 'import type { Any } from "../tokens/part.ts";', undefined],
  ["core/a.ts", 'import { type Other, two } from "../tokens/part.ts";', "may not import tokens."],
  ["core/a.ts", 'import type { App } from "../app/app.ts";', "may not import app."],
  ["core/a.ts", 'import type { Key } from "../config/load.ts";', "may not import config."],
  ["lib/a.ts", 'import type { Any } from "../tokens/part.ts";', "may not import tokens."],
  ["policy/a.ts", 'import type { App } from "../app/app.ts";', "may not import app."],
  ["policy/a.ts", 'import type { Key } from "../config/load.ts";', undefined],
  [
    "policy/a.ts",
    'import { type Value, three } from "../config/load.ts";',
    "may not import config.",
  ],
  ["policy/a.ts", 'export { one } from "../tokens/part.ts";', "may not import tokens."],
  ["policy/a.ts", 'export * from "../tokens/part.ts";', "may not import tokens."],
  ["policy/a.ts", 'await import("../tokens/part.ts");', "may not import tokens."],
  ...DOORS.flatMap(([library, inside, outside]): Case[] => [
    ...inside.map((at): Case => [at, `import "${library}";`, undefined]),
    ...[outside, "core/a.ts", "entry.ts"].flatMap((at): Case[] => [
      [at, `import "${library}";`, `door: ${library} `],
      [at, `export * from "${library}/deep";`, `door: ${library} `],
    ]),
  ]),
  ...["server/a.ts", "lib/a.ts", "entry.ts"].flatMap((at): Case[] => [
    [at, 'import type { Server } from "node:http";', undefined],
    [at, 'import { type Agent, createServer } from "node:http";', "costly: of node:http "],
    [at, 'import * as http from "node:http";', "costly: of node:http "],
    [at, 'export { METHODS } from "node:http";', "costly: of node:http "],
  ]),
  ...MINTS.flatMap(([mint, file, home, neighbour]): Case[] => [
    [home, `import { ${mint} } from "../core/request/${file}.ts";`, undefined],
    [neighbour, `import { other as ${mint}Other } from "../core/request/${file}.ts";`, undefined],
    [neighbour, `import { ${mint} } from "../core/request/${file}.ts";`, `mint: ${mint} `],
    [
      neighbour,
      `import { ${mint} as ${mint}Mine } from "../core/request/${file}.ts";`,
      `mint: ${mint} `,
    ],
    [neighbour, `import * as ${mint}All from "../core/request/${file}.ts";`, `mint: ${mint} `],
    [neighbour, `export { ${mint} } from "../core/request/${file}.ts";`, `mint: ${mint} `],
    ["app/app.ts", `import { ${mint} } from "../core/request/${file}.ts";`, `mint: ${mint} `],
    ["core/a.ts", `export { ${mint} } from "./${file}.ts";`, `mint: ${mint} `],
    ["config/a.ts", `import { ${mint} } from "../core/request/${file}.ts";`, `mint: ${mint} `],
  ]),
];

/** Other rules: no floating promises, no import cycles, nothing too long. */
const ORDINARY = [
  ["core/floats.ts", "async function late(): Promise<void> {}\nlate();\n", "no-floating-promises"],
  ["core/egg.ts", 'export { hen } from "./hen.ts";\nexport const egg = 1;\n', "no-cycle"],
  ["core/hen.ts", 'export { egg } from "./egg.ts";\nexport const hen = 1;\n', "no-cycle"],
  ["core/peeks.ts", "export const peek = (at: { _head: 1 }) => at._head;\n", "underscore-dangle"],
  ["core/long-file.ts", `export const one = 1;${"\n".repeat(451)}`, "max-lines)"],
  [
    "core/long-function.ts",
    `export function long(): () => void {\n  return () => {${"\n".repeat(63)}};\n}\n`,
    "max-lines-per-function",
  ],
] as const;

/** Two files whose types need each other. */
const POINTING_BACK = [
  ["core/yin.ts", 'import type { Yang } from "./yang.ts";\nexport type Yin = Yang;\n'],
  ["core/yang.ts", 'import type { Yin } from "./yin.ts";\nexport type Yang = Yin;\n'],
] as const;

/** Lines of each file in the planted tree, in the order of the cases. */
const FILES = Map.groupBy(CASES, ([at]) => at);

interface Report {
  readonly diagnostics: readonly {
    readonly code?: string;
    readonly help?: string;
    readonly filename: string;
    readonly labels: readonly { readonly span: { readonly line: number } }[];
  }[];
}

let tree: string;
let status: number | null;
let report: Report;

beforeAll(() => {
  tree = mkdtempSync(join(tmpdir(), "sallyport-lint-"));
  cpSync(join(ROOT, "oxlint.config.ts"), join(tree, "oxlint.config.ts"));
  for (const [at, cases] of FILES) {
    const file = join(tree, "src", at);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, `${cases.map(([, line]) => line).join("\n")}\n`);
  }
  for (const [at, text] of [...ORDINARY, ...POINTING_BACK])
    writeFileSync(join(tree, "src", at), text);
  const run = spawnSync(process.execPath, [OXLINT, "--format", "json", "src", "tools"], {
    cwd: tree,
    encoding: "utf8",
    env: { ...process.env, OXLINT_TSGOLINT_PATH: TSGOLINT },
  });
  status = run.status;
  report = JSON.parse(run.stdout) as Report;
});

afterAll(() => {
  rmSync(tree, { recursive: true, force: true });
});

/** Returns the import rule's messages about one line of a file. */
function refusalsAt(at: string, line: number): (string | undefined)[] {
  return report.diagnostics
    .filter(({ code }) => code === "eslint(no-restricted-imports)")
    .filter(({ filename }) => filename === join("src", at))
    .filter(({ labels }) => labels[0]?.span.line === line)
    .map(({ help }) => help);
}

it("exits with an error if an import is refused", () => {
  expect(status).toBe(1);
});

it.each(CASES)("%s: %s → %s", (at, line, refusal) => {
  const lineNumber = (FILES.get(at) ?? []).findIndex(([, text]) => text === line) + 1;
  const refusals = refusalsAt(at, lineNumber);
  expect(refusals).toEqual(refusal === undefined ? [] : [expect.stringContaining(refusal)]);
});

it.each(ORDINARY)("src/%s: %j → %s", (at, _text, rule) => {
  const codes = report.diagnostics
    .filter(({ filename }) => filename === `src/${at}`)
    .map(({ code }) => code);
  expect(codes).toContainEqual(expect.stringContaining(rule));
});

it("types may point back: they make no cycle", () => {
  const files = report.diagnostics.filter(({ code }) => code?.includes("no-cycle"));
  expect(files.map(({ filename }) => filename)).not.toContain("src/core/yin.ts");
});

/** The linter cannot tell `await import(…)` from an import that is loaded at once. */
it("src loads each tool only when its command is called", () => {
  const imports = globSync("**/*.ts", { cwd: join(ROOT, "src") }).flatMap((path) =>
    [...readFileSync(join(ROOT, "src", path), "utf8").matchAll(/.*"@sallyport\/([\w-]+).*/g)].map(
      ([line, tool]) => [path, tool, line.includes('await import("@sallyport/')],
    ),
  );
  expect(imports.filter(([path, , late]) => path !== "cli/run.ts" || late !== true)).toEqual([]);
  // A tool may hold two commands.
  const tools = globSync("tools/*/", { cwd: ROOT }).map((path) => basename(path));
  expect(new Set(imports.map(([, tool]) => tool))).toEqual(new Set(tools));
});

/** The linter checks names in import lines only, so it would accept `(await import(…)).mintPermit`. */
it.each(MINTS)("no other file of src/ contains %s", (mint, file, home) => {
  const place = mint === "mintIdentity" ? "tokens/" : home;
  const says = globSync("**/*.ts", { cwd: join(ROOT, "src") })
    .filter((path) => readFileSync(join(ROOT, "src", path), "utf8").includes(mint))
    .filter((path) => path !== `core/request/${file}.ts` && !path.startsWith(place));
  expect(says).toEqual([]);
});
