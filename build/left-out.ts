import type { Plugin } from "rolldown";

/** What stands for a file: an empty module, which is read as CommonJS. */
const NOTHING = "\0nothing ";

/**
 * Leaves files of libraries out of the bundle that are only reached by what is never asked of these libraries. The build
 * fails when there is no such file, or nothing imports it.
 *
 * @param files by the end of their paths.
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
