import { execFile } from "node:child_process";
import { resolve } from "node:path";
import { promisify } from "node:util";

const REPOSITORY = resolve(import.meta.dirname, "../..");
const run = promisify(execFile);

/** Runs `npm run build` with this output directory instead of dist/. Rejects if it fails. */
export async function buildInto(directory: string): Promise<void> {
  await run("npm", ["run", "build", "--", "--dir", directory], { cwd: REPOSITORY });
}
