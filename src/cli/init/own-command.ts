import { basename, dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { shellWord } from "../../lib/text/shell-word.ts";

/** The arguments that start this program again: Node, the flags it was started with, and the script. */
export function ownArguments(): readonly string[] {
  return [process.execPath, ...process.execArgv, ownScript()];
}

/** The command that starts Sallyport from the current directory, for lines to paste. */
export function ownCommand(): string {
  const script = ownScript();
  const source = join("src", "main.ts");
  if (script.endsWith(sep + source)) {
    return shellWord(fromHere(join(dirname(dirname(script)), "bin", "sallyport")));
  }
  const installed = script.includes(`${sep}node_modules${sep}`);
  return installed ? "npx sallyport" : `node ${shellWord(fromHere(script))}`;
}

/** The file that Node was started with, or the entry of this program when a test runs it. */
function ownScript(): string {
  const [, script = ""] = process.argv;
  if (basename(script) === "main.js" || basename(script) === "main.ts") return script;
  return fileURLToPath(new URL("../../main.ts", import.meta.url));
}

function fromHere(path: string): string {
  const short = relative(process.cwd(), path);
  if (short.startsWith(`..${sep}..`)) return path;
  return short.includes(sep) ? short : `.${sep}${short}`;
}
