import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Plugin } from "rolldown";

/** A package with code in the bundle. */
interface Bundled {
  readonly title: string;
  readonly licence: string | undefined;
  /** The complete texts of its licence files. */
  readonly texts: readonly string[];
}

/** Licences that only require that their text is included. Read any other licence before you add it. */
const ACCEPTED: readonly string[] = [
  "0BSD",
  "Apache-2.0",
  "BlueOak-1.0.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "ISC",
  "MIT",
];

/** Apache-2.0 requires that NOTICE is passed on (section 4 d). */
const LICENCE_FILE = /^(?:licen[cs]e|copying|copyright|notice)/i;

const LICENCE_SECTION = /^#+ *licen[cs]e *\n([^]+?)(?=^#|(?![^]))/im;

/** The innermost package of a path; its name may have a scope. */
const PACKAGE_DIRECTORY = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/;

/**
 * Writes a file next to the bundle with the licences of all packages that have code in it. The build fails if a package has
 * no licence text, or a licence that is not accepted.
 */
export function licences(fileName: string): Plugin {
  return {
    name: "licences",
    generateBundle(_options, bundle) {
      const modules = Object.values(bundle).flatMap((output) =>
        output.type === "chunk" ? output.moduleIds : [],
      );
      const directories = new Set(modules.flatMap((id) => packageDirectory(id) ?? []));
      const packages = [...directories].map((directory) => {
        const own = modules.filter((id) => packageDirectory(id) === directory);
        return readPackage(directory, own);
      });
      for (const { title, licence, texts } of packages) {
        if (texts.length === 0) this.error(`${title} has no file with its licence`);
        const parts = licence?.replaceAll(/[()]/g, "").split(" AND ") ?? [""];
        if (parts.some((part) => !ACCEPTED.includes(part))) {
          this.error(`${title} has the licence ${licence}, which is not among the accepted`);
        }
      }
      this.emitFile({ type: "asset", fileName, source: render(packages) });
    },
  };
}

/** Returns the directory of a module's package; undefined for our own modules. */
function packageDirectory(id: string): string | undefined {
  // The bundler's own code, which connects CommonJS and ES modules.
  const file = id.startsWith("\0") ? fileURLToPath(import.meta.resolve("rolldown")) : id;
  return PACKAGE_DIRECTORY.exec(file)?.[0];
}

/** @param modules its files in the bundle. */
function readPackage(directory: string, modules: readonly string[]): Bundled {
  const about: Readonly<Record<"name" | "version" | "license", string | undefined>> = JSON.parse(
    readFileSync(join(directory, "package.json"), "utf8"),
  );
  return {
    title: `${about.name} ${about.version}`,
    licence: about.license,
    texts: licenceTexts(directory, about.license, modules),
  };
}

/** The comment with which a file begins. */
const HEAD = /^(?:\/\/.*\n)+/;

/** Our own licence is Apache-2.0. */
const APACHE = new URL("../LICENSE", import.meta.url);

/**
 * Returns the licence texts of a package. Some have the licence only in a section of the readme, others in the head of each file:
 * those of Apache-2.0 refer to its text.
 */
function licenceTexts(
  directory: string,
  licence: string | undefined,
  modules: readonly string[],
): string[] {
  const files = readdirSync(directory).toSorted();
  const texts = (form: RegExp): string[] =>
    files
      .filter((file) => form.test(file))
      .map((file) => readFileSync(join(directory, file), "utf8").trim());
  const whole = texts(LICENCE_FILE);
  if (whole.length > 0) return whole;
  const sections = texts(/^readme/i).flatMap(
    (text) => LICENCE_SECTION.exec(text)?.[1]?.trim() ?? [],
  );
  if (sections.length > 0) return sections;
  const heads = modules.map((file) => HEAD.exec(readFileSync(file, "utf8"))?.[0] ?? "");
  const found = heads.filter((head) => head.includes("Copyright"));
  if (found.length === 0) return [];
  const full = licence?.includes("Apache-2.0") === true ? [readFileSync(APACHE, "utf8")] : [];
  return [...new Set([...found, ...full].map((text) => text.trim()))];
}

/** Renders the file. Packages with the same texts are listed together above them. */
function render(packages: readonly Bundled[]): string {
  const sorted = packages.toSorted((one, other) => (one.title < other.title ? -1 : 1));
  const together = Map.groupBy(sorted, ({ texts }) => texts.join("\n\n"));
  const sections = [...together].map(([texts, of]) => {
    const titles = new Set(
      of.map(({ title, licence }) => `${title} (${licence?.replaceAll(/[()]/g, "")})`),
    );
    return `${[...titles].join("\n")}\n\n${texts}`;
  });
  const all = ["Code of these packages is part of the bundle.", ...sections];
  return `${all.join(`\n\n${"-".repeat(80)}\n\n`)}\n`;
}
