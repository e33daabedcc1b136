import { execFile } from "node:child_process";
import { resolve } from "node:path";
import { promisify } from "node:util";

const REPOSITORY = resolve(import.meta.dirname, "../..");
const run = promisify(execFile);

/** `npm run build`, into another directory than dist/. Rejects when it fails. */
export async function buildInto(directory: string): Promise<void> {
  await run("npm", ["run", "build", "--", "--dir", directory], { cwd: REPOSITORY });
}
