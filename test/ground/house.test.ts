/**
 * The size of the house, and how far its rooms are from each other. A capability may raise a limit by its own lines, in the
 * commit that adds it, with a sentence that says what for. What shrinks lowers it.
 */
import { globSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { describe, expect, it } from "vitest";

const SOURCES = resolve(import.meta.dirname, "../../src");

/** The most that each figure may be. */
const LIMITS = {
  lines: 52_450,
  files: 381,
  filesUnder40Lines: 46,
  namesUsedByOneFile: 702,
};

const texts = new Map(
  globSync("**/*.ts", { cwd: SOURCES }).map((file) => [
    file,
    readFileSync(join(SOURCES, file), "utf8"),
  ]),
);

/** The tools beside the product, held to the same manners. */
const tools = globSync("../tools/**/*.ts", { cwd: SOURCES }).map(
  (file) => [file, readFileSync(join(SOURCES, file), "utf8")] as const,
);

const IMPORT = /^(?:import|export) (?:type )?(?:\{([^}]*)\}|\* as \w+|\w+) from "([^"]+)";$/gm;

interface Import {
  readonly module: string;
  readonly names: readonly string[];
}

/** Returns what a file imports; of a file of `src`, the module is its path there. */
function importsOf(file: string, text: string): Import[] {
  return [...text.matchAll(IMPORT)].map(([, list = "", module = ""]) => ({
    module: module.startsWith(".")
      ? relative(SOURCES, resolve(SOURCES, dirname(file), module))
      : module,
    names: list.split(",").map(
      (name) =>
        name
          .trim()
          .replace(/^type /, "")
          .split(" as ")[0] ?? "",
    ),
  }));
}

const EXPORT =
  /^export (?:declare )?(?:async )?(?:abstract )?(?:const|let|class|function\*?|interface|type) (\w+)/gm;

/** Each exported name with the number of files that import it. */
function usesOfNames(): Map<string, number> {
  const uses = new Map<string, number>();
  for (const [file, text] of texts) {
    for (const [, name = ""] of text.matchAll(EXPORT)) uses.set(`${file} ${name}`, 0);
  }
  for (const [file, text] of texts) {
    const used = importsOf(file, text).flatMap(({ module, names }) =>
      names.map((name) => `${module} ${name}`),
    );
    for (const name of new Set(used)) {
      const count = uses.get(name);
      if (count !== undefined) uses.set(name, count + 1);
    }
  }
  return uses;
}

const linesOf = (text: string): number => text.split("\n").length - 1;

describe("the size of src", () => {
  const uses = [...usesOfNames().values()];
  const lines = [...texts.values()].map(linesOf);
  const figures = {
    lines: lines.reduce((sum, each) => sum + each, 0),
    files: texts.size,
    filesUnder40Lines: lines.filter((each) => each < 40).length,
    namesUsedByOneFile: uses.filter((count) => count === 1).length,
  };

  it.each(Object.keys(LIMITS) as (keyof typeof LIMITS)[])("%s stay within their limit", (name) => {
    expect(figures[name]).toBeLessThanOrEqual(LIMITS[name]);
    // Whoever makes it smaller keeps it so.
    expect(figures[name]).toBeGreaterThan(LIMITS[name] * 0.97);
  });

  it("reads the exports and imports of src", () => {
    expect(uses.length).toBeGreaterThan(1_000);
    expect(uses.filter((count) => count > 1).length).toBeGreaterThan(500);
  });
});

/** An object's own properties, packed into one line to look shorter: `...{ a, b }`. */
const PACKED = /\.\.\.\{ ?\w/;

it("no literal is packed, and no module is imported twice in one file", () => {
  expect(PACKED.test("return { ...{ name, kind }, path };")).toBe(true);
  const all = [...texts, ...tools];
  const packed = all.filter(([, text]) => PACKED.test(text)).map(([file]) => file);
  const twice = all.flatMap(([file, text]) => {
    const imports = text.replaceAll(/^export [^;]*;$/gm, "");
    const modules = importsOf(file, imports).map(({ module }) => module);
    const again = modules.filter((module, at) => modules.indexOf(module) !== at);
    return again.map((module) => `${file}: ${module}`);
  });
  expect({ packed, twice }).toEqual({ packed: [], twice: [] });
});

/** The most interfaces that may describe one class, or what one function of another file returns. */
const MIRRORS = 4;
/** Node's own classes are the other implementation. */
const OF_NODE = new Set(["IncomingRequest"]);
const INTERFACE = /^(?:export )?interface (\w+)(?:<[^{]*>)?(?: extends [^{]*)?\s*\{\n(.*?)^\}/gms;
const METHOD = /^ {2}\w+\??(?:<[^>]*>)?\(/m;

/** Returns the files with a class that implements an interface, or a function or something else that is declared to be it. */
function makersOf(name: string): Record<"classes" | "functions" | "others", string[]> {
  const found = (pattern: string): string[] =>
    [...texts, ...tools].flatMap(([file, text]) =>
      Array.from(text.matchAll(new RegExp(pattern, "gm")), () => file),
    );
  return {
    classes: found(`\\bclass \\w+[^()]{0,200}?\\bimplements [^{]*\\b${name}\\b`),
    functions: found(`\\): (?:Promise<)?${name}\\b[^;{]*\\{$`),
    // Constants, and methods that several classes have.
    others: found(`\\bconst \\w+: ${name}\\b|\\): ${name};$`),
  };
}

/**
 * An interface with methods is a mirror if one class alone implements it, or one function of another file alone returns it, and
 * no test names it, to put something else in its place. Objects that are written out are not counted.
 */
it("few interfaces mirror one class", () => {
  const tests = globSync("**/*.ts", { cwd: resolve(SOURCES, "../test") })
    .map((file) => readFileSync(resolve(SOURCES, "../test", file), "utf8"))
    .join("\n");
  const interfaces = [...texts].flatMap(([file, text]) =>
    Array.from(
      text.replaceAll(/\/\*\*.*?\*\//gs, "").matchAll(INTERFACE),
      ([, name = "", body = ""]) => ({
        file,
        name,
        body,
      }),
    ),
  );
  const withMethods = interfaces.filter(({ body }) => METHOD.test(body));
  expect(withMethods.length).toBeGreaterThan(50);
  const mirrors = withMethods.filter(({ file, name }) => {
    const { classes, functions, others } = makersOf(name);
    const [only = file] = [...classes, ...functions];
    if (OF_NODE.has(name)) return false;
    const isAlone = classes.length + functions.length === 1 && others.length === 0;
    return (
      isAlone && (classes.length === 1 || only !== file) && !new RegExp(`\\b${name}\\b`).test(tests)
    );
  });
  expect(mirrors.map(({ file, name }) => `${file}: ${name}`).slice(MIRRORS)).toEqual([]);
});
