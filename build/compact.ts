import { minify } from "rolldown/utils";
import type { Plugin } from "rolldown";

/** Where the code of a module begins in a chunk: the bundler writes a comment with its path. */
const MODULE = /^\/\/ (?=\S+\.\w+(?:\?\S*)?$)/m;
/** The exports of a chunk, after its last module. */
const EXPORTS = /^export \{/m;

/**
 * Removes white space and comments from library code, and shortens the names of its local variables: each library module becomes
 * one line, after the line with its path. Names of functions, and the lines of our own code, stay unchanged, so that stack traces
 * are readable.
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
    mangle: { toplevel: false, keepNames: true },
    codegen: { removeWhitespace: true, asciiOnly: true, legalComments: "none" },
  });
  if (errors[0] !== undefined) throw new Error(`${path}: ${errors[0].message}`);
  return `${path}\n${code}\n${text.slice(behind)}`;
}
