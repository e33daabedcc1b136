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
  lines: 55_425,
  files: 363,
  filesUnder40Lines: 41,
  // Five for several certificates, and for what doctor reads of the running proxy.
  namesUsedByOneFile: 648,
};

/** Without what is generated: nobody writes or reads it. */
const texts = new Map(
  globSync("**/*.ts", { cwd: SOURCES, exclude: ["**/*_pb.ts"] }).map((file) => [
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

/** An object's own properties, packed into one line to look shorter. */
const PACKED = /\.\.\.\{ ?[\w.]/;

it("no literal is packed, and no module is imported twice in one file", () => {
  expect(PACKED.test("return { ...".concat("{ name, kind }, path };"))).toBe(true);
  const folders = "{src,tools,test,soak,fuzz,bench,build,docs}";
  const packed = globSync(`../${folders}/**/*.ts`, {
    cwd: SOURCES,
    exclude: ["**/node_modules/**"],
  }).filter((file) => PACKED.test(readFileSync(join(SOURCES, file), "utf8")));
  const twice = [...texts, ...tools].flatMap(([file, text]) => {
    const imports = text.replaceAll(/^export [^;]*;$/gm, "");
    const modules = importsOf(file, imports).map(({ module }) => module);
    const again = modules.filter((module, at) => modules.indexOf(module) !== at);
    return again.map((module) => `${file}: ${module}`);
  });
  expect({ packed, twice }).toEqual({ packed: [], twice: [] });
});

/** The most interfaces that may describe one class, or what one function of another file returns. */
const MIRRORS = 4;
const INTERFACE = /^(?:export )?interface (\w+)[^{]*\{\n(.*?)^\}/gms;
const METHOD = /^ {2}(\w+)\??(?:<[^>]*>)?\(/gm;
/** The head of a class that implements something. */
const CLASS = /^.*\bclass \w+(?:(?!\{$)[^])*?\bimplements ((?:(?!\{$)[^])*)\{$/gm;
/** The type that a function or method returns. */
const RETURNED = /\): (?:Promise<)?(\w+)[^;{]*\{$/gm;
/** The type of an object that is written out. */
const OBJECT = /\bconst \w+: (\w+)(?:<[^=]*>)? = [{(]/g;

/** Returns for each type the files that have something of it, one entry each. */
function makers(pattern: RegExp): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const [file, text] of [...texts, ...tools]) {
    for (const [, types = ""] of text.matchAll(pattern)) {
      for (const name of types.match(/\w+/g) ?? []) {
        found.set(name, [...(found.get(name) ?? []), file]);
      }
    }
  }
  return found;
}

/**
 * An interface with methods is a mirror if the only thing of its kind is one class that implements it, or one function of another
 * file that returns it, and if no test puts something else in its place: names it, or has several methods of these names.
 */
it("few interfaces mirror one class", () => {
  const classes = makers(CLASS);
  const functions = makers(RETURNED);
  const objects = makers(OBJECT);
  const tests = globSync("**/*.ts", { cwd: resolve(SOURCES, "../test") }).map(
    (file) => new Set(readFileSync(resolve(SOURCES, "../test", file), "utf8").match(/\w+/g) ?? []),
  );
  const isReplaced = (name: string, methods: readonly string[]): boolean =>
    tests.some(
      (words) =>
        words.has(name) || (methods.length > 1 && methods.every((each) => words.has(each))),
    );
  const interfaces = [...texts].flatMap(([file, text]) =>
    Array.from(
      text.replaceAll(/\/\*\*.*?\*\//gs, "").matchAll(INTERFACE),
      ([, name = "", body = ""]) => ({
        file,
        name,
        methods: Array.from(body.matchAll(METHOD), ([, method = ""]) => method),
      }),
    ),
  );
  const withMethods = interfaces.filter(({ methods }) => methods.length > 0);
  expect(withMethods.length).toBeGreaterThan(50);
  expect(classes.size).toBeGreaterThan(10);
  const mirrors = withMethods.filter(({ file, name, methods }) => {
    const ofClasses = classes.get(name) ?? [];
    const all = [...ofClasses, ...(functions.get(name) ?? []), ...(objects.get(name) ?? [])];
    if (all.length !== 1 || objects.has(name) || isReplaced(name, methods)) return false;
    return ofClasses.length === 1 || all[0] !== file;
  });
  const named = mirrors.map(({ file, name }) => `${file}: ${name}`);
  expect(named.length, named.join(", ")).toBeLessThanOrEqual(MIRRORS);
});
