import type { Plugin } from "rolldown";

/** The prefix of the empty module that replaces a file. It is read as CommonJS. */
const NOTHING = "\0nothing ";

/**
 * Omits library files from the bundle that only unused functions of the libraries need. The build fails if such a file does
 * not exist, or nothing imports it.
 *
 * @param files the ends of their paths.
 */
export function leftOut(files: readonly string[]): Plugin {
  const met = new Set<string>();
  return {
    name: "left-out",
    async resolveId(specifier, importer, options) {
      if (importer === undefined || importer.startsWith("\0")) return null;
      const found = await this.resolve(specifier, importer, { ...options, skipSelf: true });
      const file = files.find((end) => found?.id.endsWith(`/node_modules/${end}`));
      if (file === undefined) return found;
      met.add(file);
      return NOTHING + file;
    },
    load: (id) => (id.startsWith(NOTHING) ? { code: "module.exports = {};" } : null),
    generateBundle() {
      const unmet = files.filter((file) => !met.has(file));
      if (unmet.length > 0) this.error(`nothing imports ${unmet.join(", ")}`);
    },
  };
}
