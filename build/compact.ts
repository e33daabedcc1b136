import { minify } from "rolldown/utils";
import type { Plugin } from "rolldown";

/** Where the code of a module begins in a chunk: the bundler says whose it is. */
const MODULE = /^\/\/ (?=\S+\.\w+(?:\?\S*)?$)/m;
/** What a chunk exports, behind its last module. */
const EXPORTS = /^export \{/m;

/**
 * Takes white space and comments out of the code of libraries: each of their modules is one line, behind the line that names
 * it. Their names stay, and the lines of our own code, so that stack traces can be read.
 */
export function compact(): Plugin {
  return {
    name: "compact",
    async renderChunk(code) {
      const [imports = "", ...modules] = code.split(MODULE);
      const compacted = await Promise.all(modules.map(withoutSpace));
      return { code: [imports, ...compacted].join("// "), map: null };
    },
  };
}

/** @param text a module, beginning with its path. */
async function withoutSpace(text: string): Promise<string> {
  if (!text.startsWith("node_modules/")) return text;
  const end = text.indexOf("\n");
  const path = text.slice(0, end);
  const behind = EXPORTS.exec(text)?.index ?? text.length;
  const { code, errors } = await minify(path, text.slice(end, behind), {
    module: true,
    compress: false,
    mangle: false,
    codegen: { removeWhitespace: true, asciiOnly: true, legalComments: "none" },
  });
  if (errors[0] !== undefined) throw new Error(`${path}: ${errors[0].message}`);
  return `${path}\n${code}\n${text.slice(behind)}`;
}
