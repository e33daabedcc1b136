import type { Plugin } from "rolldown";

/** Marks the files as ES modules for Node, wherever the directory is copied. */
export function moduleType(): Plugin {
  return {
    name: "module-type",
    generateBundle() {
      this.emitFile({ type: "asset", fileName: "package.json", source: '{ "type": "module" }\n' });
    },
  };
}
