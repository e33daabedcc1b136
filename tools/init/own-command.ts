import { existsSync, realpathSync } from "node:fs";
import { basename, delimiter, dirname, isAbsolute, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { shellWord } from "../../src/lib/text/printable.ts";

/** Returns the program that is installed for everybody, in `PATH`; undefined if there is none, or only a clone. */
export function installedProgram(): string | undefined {
  const places = (process.env["PATH"] ?? "")
    .split(delimiter)
    .map((place) => join(place, "sallyport"));
  return places.find((place) => {
    if (!isAbsolute(place) || !existsSync(place)) return false;
    const root = dirname(dirname(realpathSync(place)));
    return !existsSync(join(root, "src", "main.ts"));
  });
}

/** Returns a command to paste that starts Sallyport from the current directory. */
export function ownCommand(): string {
  const script = ownScript();
  const source = join("src", "main.ts");
  if (script.endsWith(sep + source)) {
    return shellWord(fromHere(join(dirname(dirname(script)), "bin", "sallyport")));
  }
  const installed = script.includes(`${sep}node_modules${sep}`);
  return installed ? "npx sallyport" : `node ${shellWord(fromHere(script))}`;
}

/** Returns the script that Node was started with, or the entry of this program if a test runs it. */
function ownScript(): string {
  const [, script = ""] = process.argv;
  if (basename(script) === "main.js" || basename(script) === "main.ts") return script;
  return fileURLToPath(new URL("../../src/main.ts", import.meta.url));
}

function fromHere(path: string): string {
  const short = relative(process.cwd(), path);
  if (short.startsWith(`..${sep}..`)) return path;
  return short.includes(sep) ? short : `.${sep}${short}`;
}
