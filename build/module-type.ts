import type { Plugin } from "rolldown";

/** Tells Node that the files are ES modules, wherever the directory is put. */
export function moduleType(): Plugin {
  return {
    name: "module-type",
    generateBundle() {
      this.emitFile({ type: "asset", fileName: "package.json", source: '{ "type": "module" }\n' });
    },
  };
}
